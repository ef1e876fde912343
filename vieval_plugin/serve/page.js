"use strict";
const at = (id) => document.getElementById(id);
const files = { output: "", source: "" };

async function take(role, file) {
  if (!file) return;
  const reader = new FileReader();
  const read = new Promise((done, failed) => { reader.onload = done; reader.onerror = failed; });
  reader.readAsDataURL(file);
  await read;
  files[role] = reader.result;
  at(`shown-${role}`).src = reader.result;
  at(`shown-${role}`).hidden = false;
}

for (const role of Object.keys(files)) {
  const drop = at(`drop-${role}`);
  at(role).addEventListener("change", (event) => take(role, event.target.files[0]));
  drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    take(role, event.dataTransfer.files[0]);
  });
}

at("example").addEventListener("click", () => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 512, height: 512 });
  const drawing = canvas.getContext("2d");
  drawing.fillStyle = "#f4d35e";
  drawing.fillRect(0, 0, 512, 512);
  drawing.fillStyle = "#16181b";
  drawing.font = "bold 72px sans-serif";
  drawing.textAlign = "center";
  drawing.fillText("OPEN DAILY", 256, 280);
  at("prompt").value = 'a yellow poster with the title "OPEN DAILY"';
  canvas.toBlob((blob) => take("output", new File([blob], "example.png", { type: "image/png" })));
});

function show(title, status, verdicts) {
  at("verdict").hidden = false;
  at("value").textContent = title;
  at("status").textContent = status;
  at("scores").replaceChildren();
  for (const [aspect, score] of verdicts.flatMap((one) => Object.entries(one.scores || {}))) {
    const [term, number] = [document.createElement("dt"), document.createElement("dd")];
    term.textContent = aspect;
    number.textContent = score.toFixed(3);
    at("scores").append(term, number);
  }
  at("rationale").textContent = verdicts.map((one) => one.rationale || "").join("\n").trim();
}

at("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (!files.output) {
    show("No image", "Drop one, or choose a file.", []);
    return;
  }
  const edit = Boolean(files.source);
  const sample = {
    kind: edit ? "tie" : "tig",
    images: edit ? files : { output: files.output },
    texts: { [edit ? "instruction" : "prompt"]: at("prompt").value },
  };
  at("judge").disabled = true;
  try {
    const home = location.pathname.replace(/\/?$/, "/"); /* a proxy may serve the page under a path */
    const response = await fetch(`${home}${at("reward").value}/v1/judge`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ samples: [sample] }),
    });
    const answer = await response.json();
    if (!response.ok) {
      show("Not judged", answer.error, []);
      return;
    }
    const [verdict] = answer.verdicts;
    const title = verdict.value === null ? "No reward" : `Reward ${verdict.value.toFixed(3)}`;
    show(title, verdict.reason ? `${verdict.status}: ${verdict.reason}` : verdict.status, verdict.verdicts);
  } catch (error) {
    show("Not judged", `the server did not answer (${error.message})`, []);
  } finally {
    at("judge").disabled = false;
  }
});
