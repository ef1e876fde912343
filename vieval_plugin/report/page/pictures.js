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

  /* one prompt at a time, the largest spread of scores first */
  const across = document.getElementById("across");
  const prompts = Array.from(document.querySelectorAll(".card[data-spread]"));
  prompts.sort((a, b) => b.dataset.spread - a.dataset.spread);
  if (across && prompts.length > 1) {
    let at = 0;
    const turn = (step) => {
      at = (at + step + prompts.length) % prompts.length;
      const card = prompts[at].cloneNode(true);
      card.removeAttribute("id");
      card.hidden = false;
      across.querySelector(".prompt-place").replaceChildren(card);
      across.querySelector("output").textContent = "prompt " + (at + 1) + " of " + prompts.length;
    };
    for (const button of across.querySelectorAll("button[data-step]")) {
      button.addEventListener("click", () => turn(Number(button.dataset.step)));
    }
    across.hidden = false;
    turn(0);
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
    const words = [card.querySelector("h3"), ...card.querySelectorAll(".prompt"), button.closest("figure").querySelector("figcaption"),
      ...card.querySelectorAll(".verdict:not([hidden]) > p, .verdict .scores, .verdict .rationale, .said")];
    viewer.querySelector(".words").replaceChildren(...words.map((word) => word.cloneNode(true)));
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
