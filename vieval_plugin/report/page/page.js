"use strict";
(function () {
  const form = document.getElementById("filters");
  const place = document.getElementById("cards");
  const count = document.getElementById("count");
  const cards = Array.from(place.children);
  const selects = Array.from(form.querySelectorAll("select[data-filter]"));
  const order = form.querySelector("select[data-order]");
  const search = form.querySelector("input[data-search]");
  const score = (card) => (card.dataset.score === "" ? -1 : Number(card.dataset.score));
  const spread = (card) => (card.dataset.spread === "" ? -1 : Number(card.dataset.spread));
  cards.forEach((card, number) => { card.dataset.i = number; });
  const apart = (card, judge) => Number(card.dataset.apart.split(" ")[judge] || -1);
  const first = new Map();
  for (const card of cards) {
    if (!first.has(card.dataset.prompt)) first.set(card.dataset.prompt, first.size);
  }
  function show() {
    const wanted = selects.filter((one) => one.value !== "");
    const judge = (selects.find((one) => one.dataset.filter === "judge") || {}).value;
    const byPrompt = order.value === "prompt" || order.value === "spread";
    let shown = 0;
    for (const card of cards) {
      const matches = wanted.every((one) => card.dataset[one.dataset.filter].split(" ").includes(one.value));
      const found = Array.from(card.querySelectorAll(".prompt")).some((text) => text.textContent.toLowerCase().includes(search.value.toLowerCase()));
      card.dataset.out = matches && (found || !search.value) ? "" : "1";
      shown += card.dataset.out ? 0 : 1;
      for (const verdict of card.querySelectorAll(".verdict")) {
        verdict.hidden = Boolean(judge) && verdict.dataset.j !== judge;
      }
    }
    const sorted = cards.slice().sort((a, b) => {
      if (order.value === "best" || order.value === "worst") return (order.value === "best" ? -1 : 1) * (score(a) - score(b)) || a.dataset.i - b.dataset.i;
      if (order.value === "spread" && a.dataset.prompt !== b.dataset.prompt) return spread(b) - spread(a) || first.get(a.dataset.prompt) - first.get(b.dataset.prompt);
      if (byPrompt) return first.get(a.dataset.prompt) - first.get(b.dataset.prompt) || a.dataset.i - b.dataset.i;
      if (judge) return apart(b, judge) - apart(a, judge) || a.dataset.i - b.dataset.i;
      return a.dataset.i - b.dataset.i;
    });
    let last = null;
    for (const card of sorted) {
      const begins = byPrompt && !card.dataset.out && card.dataset.prompt !== last;
      card.classList.toggle("first-of-prompt", begins);
      if (!card.dataset.out) last = card.dataset.prompt;
    }
    if (sorted.some((card, at) => place.children[at] !== card)) place.replaceChildren(...sorted);
    place.dispatchEvent(new Event("filtered"));
    count.textContent = shown + " of " + cards.length + " cards";
  }
  form.addEventListener("change", show);
  search.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(show, 0));
  show();
})();
