// The list of a run: headings sort it, a threshold divides the inputs, and a file has the result.
function listOfRun(table) {
  const rows = [...table.tBodies[0].rows], heads = [...table.tHead.rows[0].cells];
  const controls = ["by", "output", "side", "at"].map((id) => document.getElementById(id));
  const [by, output, side, at] = controls, counts = document.getElementById("counts");
  const words = new Intl.Collator(undefined, { numeric: true });
  const cell = (row, name) => row.cells[heads.findIndex((head) => head.dataset.name === name)];
  const number = (found) => (found.dataset.value === "" ? NaN : Number(found.dataset.value));
  const plain = (found) => (found.querySelector("a bdi, :scope > bdi") ?? found).textContent.trim(); // without cautions
  const key = (found) => ("value" in found.dataset ? number(found) : plain(found));

  function sort(name, order) {
    const sign = order === "descending" ? -1 : 1;
    const keyed = rows.map((row) => [key(cell(row, name)), row]);
    keyed.sort(([a], [b]) => {
      if (typeof a === "string") return sign * words.compare(a, b);
      return Number.isNaN(a) || Number.isNaN(b) ? Number.isNaN(a) - Number.isNaN(b) : sign * (a - b);
    });
    for (const head of heads) head.removeAttribute("aria-sort");
    heads.find((head) => head.dataset.name === name).setAttribute("aria-sort", order);
    table.tBodies[0].append(...keyed.map(([, row]) => row));
  }

  function meets(row) {
    if (output.value && cell(row, "output").textContent !== output.value) return false;
    const value = number(cell(row, by.value)), below = !(value >= Number(at.value));
    return side.value === "below" ? below : !below;
  }

  // An input with several outputs is rejected if one of them meets the rule.
  function decide() {
    const isSet = at.value !== "" && at.checkValidity();
    const rejected = new Set(isSet ? rows.filter(meets).map((row) => row.dataset.input) : []);
    for (const row of rows) {
      const reject = rejected.has(row.dataset.input);
      row.classList.toggle("reject", reject);
      cell(row, "decision").textContent = !isSet ? "" : reject ? "reject" : "accept";
    }
    table.classList.toggle("decided", isSet);
    const all = new Set(rows.map((row) => row.dataset.input)).size;
    spread();
    counts.textContent = isSet ? `${all - rejected.size} accepted, ${rejected.size} rejected` : "";
  }

  // How the chosen number is distributed, with the threshold; R² below -1 is drawn at -1.
  function spread() {
    const drawn = document.getElementById("spread"), bins = new Array(40).fill(0);
    const some = rows.filter((row) => !output.value || cell(row, "output").textContent === output.value);
    const values = some.map((row) => number(cell(row, by.value))).filter((value) => !Number.isNaN(value)).sort((a, b) => a - b);
    if (!values.length) return;
    const high = values.at(-1), low = by.value === "r2" ? Math.max(values[0], Math.min(-1, high)) : values[0];
    const place = (value) => Math.min(Math.max((value - low) / (high - low || 1), 0), 1);
    for (const value of values) bins[Math.min(Math.floor(40 * place(value)), 39)] += 1;
    const most = Math.max(...bins);
    drawn.querySelector(".bars").setAttribute("d", bins.map((count, k) => `M${12 * k + 1} 64v${-Math.ceil((62 * count) / most)}h10V64z`).join(""));
    drawn.querySelector(".at").setAttribute("d", at.value === "" ? "" : `M${(480 * place(Number(at.value))).toFixed(1)} 0V64`);
    const plain = (value) => String(Number(value.toPrecision(3))).replace("-", "\u2212");
    const words = `${by.selectedOptions[0].textContent}: ${values.length} explanations, from ${plain(values[0])} to ${plain(high)}, median ${plain((values[(values.length - 1) >> 1] + values[values.length >> 1]) / 2)}`;
    const above = values.filter((value) => value >= Number(at.value)).length;
    document.getElementById("spread-words").textContent = at.value === "" ? `${words}.` : `${words}; ${above} at least ${at.value}, ${values.length - above} below.`;
  }

  function sorting() {
    const head = heads.find((found) => found.hasAttribute("aria-sort"));
    return [head.dataset.name, head.getAttribute("aria-sort")];
  }

  function remember() {
    const [name, order] = sorting(), found = new URLSearchParams({ sort: name, order });
    for (const control of controls) if (at.value !== "") found.set(control.id, control.value);
    history.replaceState(null, "", `#${found}`);
  }

  function recall() {
    const found = new URLSearchParams(location.hash.slice(1));
    for (const control of controls) {
      const value = found.get(control.id), kept = control.value;
      if (value !== null) control.value = value;
      if (control.selectedIndex === -1) control.value = kept; // an unknown choice
    }
    const known = heads.some((head) => head.dataset.name === found.get("sort"));
    if (known) sort(found.get("sort"), found.get("order") === "descending" ? "descending" : "ascending");
    decide();
  }

  function save() {
    const said = [by, output, side].map((control) => control.selectedOptions[0].textContent.trim());
    const rule = at.value === "" ? "" : `reject if the ${said[0]} of ${said[1]} ${said[2]} ${at.value}`;
    const lines = [...table.tBodies[0].rows].map((row) => [
      plain(cell(row, "input")), cell(row, "output").textContent.trim(),
      ...["score", "r2"].map((name) => cell(row, name).dataset.value).map((v) => (v === "" ? "" : Number(v))),
      [...cell(row, "top").querySelectorAll("li")].map((part) => part.textContent.trim()).join("; "),
      cell(row, "decision").textContent, rule,
    ]);
    const names = ["input", "output", "score", "r2", "most important", "decision", "rule"];
    saveFile("decisions.csv", new Blob([csvText([names, ...lines])], { type: "text/csv" }));
  }

  table.tHead.addEventListener("click", (event) => {
    const head = event.target.closest("button")?.parentElement;
    if (!head) return;
    const again = head.getAttribute("aria-sort") === "ascending";
    sort(head.dataset.name, again ? "descending" : "ascending");
    remember();
  });
  for (const control of controls) {
    control.addEventListener("input", () => { decide(); remember(); });
  }
  document.getElementById("save").addEventListener("click", save);
  addEventListener("hashchange", recall);
  recall();
}

const listed = document.getElementById("inputs");
if (listed) listOfRun(listed);
