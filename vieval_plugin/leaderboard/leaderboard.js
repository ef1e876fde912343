"use strict";
for (const form of document.forms) {
  const views = [...form.parentElement.querySelectorAll(".view")];
  const show = () => {
    const choice = [...form.querySelectorAll("select, input:checked")].map((field) => field.value).join(" ");
    if (!views.some((view) => view.dataset.choice === choice)) return;
    for (const view of views) {
      view.open = true;
      view.hidden = view.dataset.choice !== choice;
    }
  };
  form.hidden = false;
  form.parentElement.classList.add("scripted");
  form.addEventListener("change", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  show();
}
// rows without a number come last whichever way a column is sorted
for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells];
  const value = (row, column) => {
    const text = row.cells[column].innerText.trim();
    const number = parseFloat(text.replace(/,/g, ""));
    return headings[column].textContent === "judge" || Number.isNaN(number) ? text.toLowerCase() : number;
  };
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const up = heading.getAttribute("aria-sort") === "descending";
      for (const other of headings) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", up ? "ascending" : "descending");
      const order = (a, b) => {
        const [first, second] = [value(a, column), value(b, column)];
        if (typeof first !== typeof second) return typeof first === "number" ? -1 : 1;
        const sign = first < second ? -1 : first > second ? 1 : 0;
        return up ? sign : -sign;
      };
      for (const row of table.tBodies[0].rows) row.classList.remove("separated");
      table.tBodies[0].append(...[...table.tBodies[0].rows].sort(order));
    });
  });
}
const copy = document.getElementById("copy");
if (copy && navigator.clipboard) {
  copy.hidden = false;
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById("command").textContent);
    copy.textContent = "Copied";
  });
}
