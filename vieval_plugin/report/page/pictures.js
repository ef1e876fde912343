"use strict";
(function () {
  /* cards: so many at first, then as many again each time; other cards are those that a filter leaves out */
  const limits = new Map();
  function reveal(place, limit) {
    limits.set(place, limit);
    let matching = 0;
    for (const card of place.children) {
      const out = card.dataset.out === "1";
      card.hidden = out || matching >= limit;
      matching += out ? 0 : 1;
    }
    const more = place.nextElementSibling;
    more.hidden = matching <= limit;
    more.textContent = "Show more (" + (matching - limit) + " left)";
  }
  const places = Array.from(document.querySelectorAll(".cards[data-first]"));
  for (const place of places) {
    const first = Number(place.dataset.first);
    place.nextElementSibling.addEventListener("click", () => reveal(place, 2 * limits.get(place)));
    place.addEventListener("filtered", () => reveal(place, Math.max(first, limits.get(place))));
    reveal(place, first);
  }
  function follow() {
    const card = document.getElementById(location.hash.slice(1));
    if (!card || !card.hidden || !limits.has(card.parentElement)) return;
    reveal(card.parentElement, Infinity);
    card.scrollIntoView();
  }
  window.addEventListener("hashchange", follow);
  window.addEventListener("beforeprint", () => places.forEach((place) => reveal(place, Math.max(place.id ? 12 : 3, limits.get(place)))));
  follow();

  function copy(card) {
    const clone = card.cloneNode(true);
    for (const element of [clone, ...clone.querySelectorAll("[id]")]) element.removeAttribute("id");
    clone.removeAttribute("aria-labelledby");
    clone.hidden = false;
    return clone;
  }
  /* the pictures of one prompt, under a chart that has a button for each */
  for (const exhibit of document.querySelectorAll(".exhibit")) {
    const columns = exhibit.querySelector(".columns");
    const prompts = Array.from(columns.children);
    const pressed = prompts.findIndex((one) => one.getAttribute("aria-pressed") === "true");
    let at = Math.max(pressed, 0);
    const mark = () => {
      prompts.forEach((one, n) => { one.setAttribute("aria-pressed", String(n === at)); one.tabIndex = n === at ? 0 : -1; });
      exhibit.querySelector("output").textContent = "prompt " + (at + 1) + " of " + prompts.length;
    };
    const look = (n) => {
      if (n < 0 || n === at) return;
      at = n % prompts.length;
      exhibit.querySelector(".prompt-place").replaceChildren(copy(document.getElementById(prompts[at].dataset.card)));
      mark();
    };
    const under = (event) => prompts.indexOf((document.elementFromPoint(event.clientX, event.clientY) || columns).closest("button"));
    columns.addEventListener("pointermove", (event) => look(under(event)));
    columns.addEventListener("click", (event) => look(prompts.indexOf(event.target.closest("button"))));
    columns.addEventListener("focusin", (event) => look(prompts.indexOf(event.target)));
    columns.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (step) { look((at + step + prompts.length) % prompts.length); prompts[at].focus(); }
    });
    for (const button of exhibit.querySelectorAll("button[data-step]")) {
      button.addEventListener("click", () => look((at + Number(button.dataset.step) + prompts.length) % prompts.length));
    }
    exhibit.querySelector(".turn").hidden = prompts.length < 2;
    if (pressed >= 0) mark();
  }

  /* a picture as large as the window */
  const viewer = document.getElementById("viewer");
  let buttons = [];
  let current = 0;
  function view(index) {
    current = (index + buttons.length) % buttons.length;
    const button = buttons[current];
    const card = button.closest("article");
    const drawing = button.querySelector("svg").cloneNode(true);
    drawing.removeAttribute("width");
    drawing.removeAttribute("height");
    viewer.querySelector(".large").replaceChildren(drawing);
    if (button.dataset.original) {
      const file = new Image();
      file.alt = drawing.getAttribute("aria-label");
      file.addEventListener("load", () => { 
        if (buttons[current] !== button) return;
        if (!drawing.querySelector(".boxes")) { viewer.querySelector(".large").replaceChildren(file); return; }
        const image = document.createElementNS(drawing.namespaceURI, "image");
        for (const [name, value] of Object.entries({ href: file.src, width: "100%", height: "100%" })) image.setAttribute(name, value);
        drawing.querySelector("use").replaceWith(image);
      });
      file.src = button.dataset.original;
    }
    const words = [card.querySelector("h3"), ...card.querySelectorAll(".prompt"), button.closest("figure").querySelector("figcaption"),
      ...card.querySelectorAll(":scope > .verdict:not([hidden]) > :not(details:not(.clamped))")];
    viewer.querySelector(".words").replaceChildren(...words.filter(Boolean).map((word) => word.cloneNode(true)));
    for (const folded of viewer.querySelectorAll(".words details")) folded.open = true;
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button.zoom");
    if (!button) return;
    buttons = Array.from(document.querySelectorAll("button.zoom")).filter((one) => one.getClientRects().length);
    view(buttons.indexOf(button));
    viewer.showModal();
  });
  for (const button of viewer.querySelectorAll("button[data-step]")) {
    button.addEventListener("click", () => view(current + Number(button.dataset.step)));
  }
  viewer.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step) view(current + step);
  });
})();
