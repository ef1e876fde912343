"use strict";
for (const form of document.forms) {
  const views = [...form.parentElement.querySelectorAll(".view")];
  const show = () => {
    const choice = [...form.querySelectorAll("select")].map((select) => select.value).join(" ");
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
