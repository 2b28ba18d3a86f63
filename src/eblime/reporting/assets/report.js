(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const sections = [];
  let level = Number(document.getElementById("level").value);
  let measure = "mean", hiding = false;
  let strength = Number(document.getElementById("strength").value) / 100;

  const make = (name, attributes, parent, content) => {
    const svg = ["svg", "path", "line", "circle", "text", "rect", "title"].includes(name);
    const node = svg ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
    if (content !== undefined) node.textContent = content;
    if (parent) parent.append(node);
    return node;
  };
  const fixed = (value, decimals) => value.toFixed(decimals).replace(/^-(?=[0.]*$)/, "").replaceAll("-", "\u2212");
  const percent = (share) => `${Math.round(100 * share)} %`;
  const chance = (share) => (share > 0.99 ? "> .99" : share < 0.01 ? "< .01" : share.toFixed(2).replace(/^0/, ""));

  class Section {
    constructor(root) {
      this.root = root;
      this.data = JSON.parse(root.querySelector(".numbers").textContent);
      this.hasIntervals = Boolean(this.data.low);
      this.positions = new Map(this.data.index.map((feature, position) => [feature, position]));
      this.rows = [...root.querySelectorAll("tbody tr")];
      this.marks = [...root.querySelectorAll("figure [data-feature]")];
      this.view = root.querySelector("figure > [tabindex]");
      this.detail = root.querySelector(".detail");
      this.legend = root.querySelector(".legend");
      if (this.legend) this.legend.hidden = !this.marks.length;
      this.photo = root.querySelector("svg.photo");
      this.isText = this.marks.some((mark) => !(mark instanceof SVGElement));
      this.cap = this.isText ? 0.7 : 1; // text stays readable
      this.chosen = 0;
      for (const panel of root.querySelectorAll(".panel")) { // panels in a row are equally high
        const { width, height } = panel.querySelector("svg").viewBox.baseVal;
        panel.style.flex = `${width / height} 1 0`;
      }
      this.panels = [...root.querySelectorAll(".panel:has(template)")].map((panel) => this.slider(panel));
      this.centres = JSON.parse(this.view?.dataset.centres ?? "{}");
      this.scale();
      this.listen();
      this.tools();
      if (this.data.fit?.numbers) this.whatIf();
      this.paint();
      this.visit(0);
      this.choose(0);
      for (const radio of root.querySelectorAll(".index input")) {
        radio.addEventListener("change", () => this.switchTo(radio.value));
      }
    }

    // A slider that switches between the slices in the panel's template.
    slider(panel) {
      const [box, ...slices] = [...panel.querySelector("template").content.children];
      const input = box.querySelector("input");
      panel.append(box);
      const show = () => {
        const slice = slices[Number(input.value)].cloneNode(true);
        const place = slice.getAttribute("aria-label").split(", ").at(-1);
        panel.querySelector("svg").replaceWith(slice);
        panel.querySelector("output").textContent = place;
        input.setAttribute("aria-valuetext", place);
        this.marks = [...this.root.querySelectorAll("figure [data-feature]")];
      };
      input.addEventListener("input", () => {
        show();
        this.tint();
        this.choose(this.chosen);
      });
      return { panel, input, show, places: slices.map((slice) => Number(slice.dataset.at)) };
    }

    // The slices through the centre of a feature, where these are stored.
    visit(position) {
      const mark = this.marks.find((node) => Number(node.dataset.feature) === this.data.index[position]);
      const box = mark?.closest(".document");
      if (box) box.scrollTop += mark.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 4;
      const centre = this.centres[this.data.index[position]];
      if (!centre) return;
      this.panels.forEach(({ input, show, places }, axis) => {
        const far = places.map((place) => Math.abs(place - centre[axis]));
        input.value = String(far.indexOf(Math.min(...far)));
        show();
      });
      this.tint();
    }

    // Lines in each slice where the other two are.
    cross() {
      const at = this.panels.map(({ input, places }) => places[Number(input.value)]);
      for (const { panel } of this.panels) {
        const svg = panel.querySelector("svg"), { width, height } = svg.viewBox.baseVal;
        for (const old of svg.querySelectorAll(".cut")) old.remove();
        const y = height * at[panel.dataset.down], x = width * at[panel.dataset.across];
        make("line", { class: "cut", x1: 0, x2: width, y1: y, y2: y }, svg);
        make("line", { class: "cut", x1: x, x2: x, y1: 0, y2: height }, svg);
      }
    }

    // Another index of the same answers: its numbers, and the rows in its order.
    switchTo(name) {
      const feature = this.data.index[this.chosen];
      const { words, ...numbers } = this.data.indices[name];
      const shown = this.few();
      const byFeature = new Map(this.rows.map((row) => [Number(row.dataset.feature), row]));
      this.data = { ...this.data, ...numbers };
      this.shownIndex = name;
      this.hasIntervals = Boolean(numbers.low);
      this.positions = new Map(this.data.index.map((known, position) => [known, position]));
      this.rows = this.data.index.map((known) => byFeature.get(known));
      this.rows.forEach((row, position) => {
        row.classList.toggle("more", position >= shown);
        row.parentNode.append(row);
      });
      this.root.querySelector(".estimand").textContent = words;
      this.root.querySelector(".estimand").parentNode.open = true;
      this.scale();
      this.paint();
      this.choose(this.positions.get(feature));
    }

    scale() {
      const ends = [0, ...this.data.mean];
      if (this.hasIntervals) for (const list of [this.data.low, this.data.high]) for (const row of list) ends.push(row[row.length - 1]);
      const low = Math.min(...ends), high = Math.max(...ends), room = 0.02 * (high - low || 1);
      this.low = low - room;
      this.high = high + room;
      const power = Math.floor(Math.log10(Math.max(-low, high) || 1));
      this.power = power < -4 || power > 6 ? Math.max(power, -300) : 0; // numbers are in units of 10^power
      this.unit = 10 ** this.power;
      this.decimals = Math.max(0, 3 - power + this.power);
      const digits = [..."\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"];
      this.times = this.power ? ` \u00d7\u00a010${String(this.power).replace("-", "\u207b").replace(/\d/g, (digit) => digits[digit])}` : "";
      this.root.querySelector("small.unit").textContent = this.times;
      this.ticks();
      if (!this.hasIntervals) return;
      const halves = this.data.low.map((row, k) => (this.data.high[k].at(-1) - row.at(-1)) / 2 / this.unit).filter((half) => half > 0);
      if (halves.length) this.decimals = Math.min(this.decimals, Math.max(0, 1 - Math.floor(Math.log10(Math.min(...halves)))));
    }

    // The axis of the bars, in the heading of their column.
    ticks() {
      const box = this.root.querySelector(".ticks"), wide = (this.high - this.low) / this.unit;
      const least = wide / (box.clientWidth < 220 ? 1.5 : 3), ten = 10 ** Math.floor(Math.log10(least));
      const step = [5, 2, 1].find((of) => of * ten <= least) * ten;
      box.replaceChildren();
      for (let k = Math.ceil(this.low / this.unit / step); k * step <= this.high / this.unit; k++) {
        const text = this.number(k * step * this.unit, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
        make("span", {}, box, text).style.left = `${(100 * (k * step * this.unit - this.low)) / (this.high - this.low)}%`;
      }
    }

    // A number in units of 10^power, with the decimals of all numbers or with others.
    number(value, decimals = this.decimals) {
      return fixed(value / this.unit, decimals);
    }

    // The ends of an interval, with as many decimals as tell them apart, and from zero if it excludes zero.
    ends(position, decimals = this.decimals) {
      const ends = [this.data.low[position][level], this.data.high[position][level]];
      if (ends[0] === ends[1]) return { text: "exact", decimals };
      const shown = ends.map((end) => this.number(end, decimals));
      const differ = shown[0] !== shown[1];
      const containZero = Math.sign(ends[0]) !== Math.sign(ends[1]);
      const anyReadsZero = shown.some((text) => /^[0.]*$/.test(text));
      const clear = differ && (containZero || !anyReadsZero);
      if (!clear && decimals < 12) return this.ends(position, decimals + 1);
      return { text: shown.join(" to "), decimals };
    }

    // A number of one feature with as many decimals as its standard deviation needs.
    precise(value, position) {
      const sd = this.data.sd[position] / this.unit;
      if (!(sd > 0)) return this.number(value);
      return this.number(value, Math.min(Math.max(this.decimals, 1 - Math.floor(Math.log10(sd))), 12));
    }

    listen() {
      let pointer = ""; // a slice that moves below a pointer at rest is not pointed at
      const place = (event) => `${event.clientX} ${event.clientY}`;
      this.root.addEventListener("pointermove", (event) => { pointer = place(event); });
      const pick = (event) => {
        if (event.type === "pointerover" && place(event) === pointer) return;
        const node = event.target.closest("[data-feature]");
        if (!node || !this.root.contains(node)) return;
        const position = this.positions.get(Number(node.dataset.feature));
        if (position === undefined || position === this.chosen) return;
        if (!node.closest("figure")) this.visit(position); // a slice under the pointer stays
        this.choose(position);
      };
      for (const kind of ["pointerover", "click", "focusin"]) {
        this.root.addEventListener(kind, pick);
      }
      this.rows.forEach((row, position) => { row.tabIndex = position === 0 ? 0 : -1; });
      this.root.addEventListener("keydown", (event) => {
        const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
        const inside = event.target === this.view ? this.view : event.target.closest("tbody tr");
        const jump = { Home: 0, End: this.last(inside) }[event.key];
        if (!inside || (step === undefined && jump === undefined)) return;
        event.preventDefault();
        const position = jump ?? Math.min(Math.max(this.chosen + step, 0), this.last(inside));
        this.visit(position);
        this.choose(position);
        if (event.target !== this.view) this.rows[position].focus();
      });
      const all = this.root.querySelector(".all");
      if (all) {
        all.addEventListener("click", () => {
          const open = this.root.classList.toggle("open");
          all.setAttribute("aria-expanded", String(open));
          all.textContent = open ? "Show fewer" : `Show all ${this.rows.length}`;
        });
      }
    }

    few() {
      return this.rows.filter((row) => !row.classList.contains("more")).length;
    }

    last(inside) {
      const shown = this.few();
      const all = inside === this.view || this.root.classList.contains("open");
      return (all ? this.rows.length : shown) - 1;
    }

    colour(position) {
      if (!this.hasIntervals) return this.data.mean[position] > 0 ? "var(--for)" : "var(--against)";
      if (this.data.low[position][level] > 0) return "var(--for)";
      return this.data.high[position][level] < 0 ? "var(--against)" : "var(--neutral)";
    }

    paint() {
      const d = this.data, needed = this.hasIntervals ? this.rows.map((_, position) => this.ends(position).decimals) : [];
      this.usual = needed.sort((a, b) => a - b)[needed.length >> 1] ?? this.decimals; // rows that need more have more
      this.rows.forEach((row, position) => {
        this.bar(row.querySelector(".bar"), position);
        const ends = this.hasIntervals ? this.ends(position, this.usual) : { decimals: this.decimals };
        row.querySelector(".value").textContent = this.number(d.mean[position], ends.decimals);
        if (!this.hasIntervals) return;
        row.querySelector(".ends").textContent = ends.text;
        row.querySelector(".chance").textContent = chance(d.positive[position]);
      });
      if (this.hasIntervals) this.root.querySelector(".ends-head").textContent = percent(d.levels[level]);
      this.tint();
    }

    bar(cell, position) {
      const d = this.data, x = (value) => (100 * (value - this.low)) / (this.high - this.low);
      cell.replaceChildren();
      const svg = make("svg", { viewBox: "0 0 100 20", preserveAspectRatio: "none", "aria-hidden": "true" }, cell);
      make("line", { x1: x(0), x2: x(0), y1: 0, y2: 20, class: "axis", "vector-effect": "non-scaling-stroke" }, svg);
      const from = this.hasIntervals ? d.low[position][level] : Math.min(0, d.mean[position]);
      const to = this.hasIntervals ? d.high[position][level] : Math.max(0, d.mean[position]);
      const bar = make("rect", { x: x(from), width: Math.max(x(to) - x(from), 0.3), y: 6, height: 8, rx: 0.6 }, svg);
      bar.style.fill = this.colour(position);
      bar.style.fillOpacity = String(Math.max(d.strength, 0.4));
      const tick = make("line", { x1: x(d.mean[position]), x2: x(d.mean[position]), y1: 3, y2: 17, "vector-effect": "non-scaling-stroke" }, svg);
      tick.style.stroke = "var(--ink)";
      tick.style.strokeWidth = "2";
    }

    // What if parts were hidden: the fit's prediction, and the model's answer where it was asked.
    whatIf() {
      const f = this.data.fit, bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
      const numbers = new Float32Array(bytes(f.numbers).buffer), bits = bytes(f.masks);
      const p = this.data.index.length, from = 2 * p + (p * (p + 1)) / 2, n = numbers.length - from;
      this.fit = { ...f, p, mean: numbers.subarray(0, p), centre: numbers.subarray(p, 2 * p), cov: numbers.subarray(2 * p, from) };
      this.asked = Array.from({ length: n }, (_, row) => ({
        score: f.prediction + f.unit * numbers[from + row],
        mask: Array.from({ length: p }, (_, j) => (bits[(row * p + j) >> 3] >> (7 - ((row * p + j) & 7))) & 1),
      }));
      this.gone = new Set();
      this.past = [];
      this.box = make("div", { class: "what-if", hidden: "" });
      this.root.querySelector(".meaning").before(this.box);
      make("p", { "aria-live": "polite", class: "predicted" }, this.box);
      const all = this.data.index;
      const top = () => this.data.index.slice(0, this.data.k);
      for (const [words, list] of [[`Show only the top ${this.data.k}`, () => all.filter((j) => !top().includes(j))], [`Hide the top ${this.data.k}`, top], ["Hide all", () => all], ["Show all", () => []]]) {
        make("button", { type: "button" }, this.box, words).addEventListener("click", () => this.hide(list()));
      }
      make("button", { type: "button", class: "undo" }, this.box, "Undo").addEventListener("click", () => {
        if (this.past.length) this.hide(this.past.pop(), false);
      });
      for (const row of this.rows) {
        const name = this.data.name[this.positions.get(Number(row.dataset.feature))];
        const button = make("button", { type: "button", class: "hide", "aria-pressed": "false", "aria-label": `hide ${name}` }, null, "hide");
        row.querySelector("th").prepend(button);
      }
      this.root.addEventListener("click", (event) => {
        const node = event.target.closest("[data-feature]");
        if (hiding && node) this.toggle(Number(node.dataset.feature));
      });
      this.root.addEventListener("keydown", (event) => {
        if (!hiding || !["Enter", " "].includes(event.key) || event.target.closest("button, input")) return;
        if (event.target !== this.view && !event.target.closest("tbody tr")) return;
        event.preventDefault();
        this.toggle(this.data.index[this.chosen]);
      });
      this.dots();
      if (this.photo && f.mean_colour) this.meanColours();
    }

    // The colour that hidden parts of a photo show: its mean over the part.
    async meanColours() {
      const { width, height } = this.photo.viewBox.baseVal, image = new Image();
      image.src = this.photo.querySelector("image").getAttribute("href");
      await image.decode();
      const pen = Object.assign(document.createElement("canvas"), { width, height }).getContext("2d", { willReadFrequently: true });
      const pixels = () => pen.getImageData(0, 0, width, height).data;
      pen.drawImage(image, 0, 0, width, height);
      const photo = pixels();
      const shapes = this.marks.filter((mark) => mark.closest(".superpixels"));
      pen.clearRect(0, 0, width, height);
      shapes.forEach((shape, k) => {
        pen.fillStyle = `rgb(${k + 1}, 0, 0)`;
        pen.fill(new Path2D(shape.getAttribute("d")), "evenodd");
      });
      const owner = pixels(), sums = shapes.map(() => [0, 0, 0, 0]);
      for (let at = 0; at < owner.length; at += 4) {
        const sum = sums[owner[at] - 1];
        if (sum) [photo[at], photo[at + 1], photo[at + 2], 1].forEach((value, k) => { sum[k] += value; });
      }
      sums.forEach(([red, green, blue, n], k) => {
        if (n) shapes[k].style.setProperty("--hidden", `rgb(${[red, green, blue].map((value) => Math.round(value / n)).join(", ")})`);
      });
    }

    toggle(feature) {
      if (!this.positions.has(feature)) return;
      const next = new Set(this.gone);
      if (!next.delete(feature)) next.add(feature);
      this.hide([...next]);
    }

    hide(features, remember = true) {
      if (remember) this.past.push([...this.gone]);
      this.gone = new Set(features);
      this.tint();
    }

    // Mean and half of the interval, as `Explanation.predict` has them.
    predict(mask) {
      const { p, mean, centre, cov, unit, intercept, variance, z } = this.fit;
      const away = mask.map((shown, j) => shown - centre[j]);
      let value = 0, spread = 0;
      for (let j = 0, at = 0; j < p; j++) {
        value += mask[j] * mean[j];
        for (let k = 0; k <= j; k++, at++) spread += (j === k ? 1 : 2) * away[j] * away[k] * cov[at];
      }
      return [intercept + unit * value, z[level] * Math.sqrt(Math.max(spread, 0) * unit * unit + variance)];
    }

    // The marks and rows of hidden parts, and the line about them.
    showHidden() {
      this.box.hidden = !hiding;
      for (const node of [...this.marks, ...this.rows]) {
        const gone = hiding && this.gone.has(Number(node.dataset.feature));
        node.classList.toggle("gone", gone);
        node.querySelector?.("button.hide")?.setAttribute("aria-pressed", String(gone));
      }
      const f = this.fit, mask = Array.from({ length: f.p }, (_, j) => (this.gone.has(j) ? 0 : 1));
      const same = mask.map((shown, j) => (f.fixed.includes(j) ? 1 : shown)); // hiding these changes nothing
      const [value, half] = this.predict(mask);
      const digits = half > 0 ? Math.max(this.power ? 0 : this.decimals, 2 - Math.floor(Math.log10(half))) : 6;
      const number = (score) => (digits > 12 ? score.toExponential(4).replaceAll("-", "\u2212") : fixed(score, digits));
      let nearest = null, gap = Infinity;
      for (const entry of this.asked) {
        const far = entry.mask.reduce((sum, shown, j) => sum + (shown !== same[j]), 0);
        if (far < gap) [nearest, gap] = [entry, far];
      }
      const parts = `${this.gone.size} of ${f.p} hidden`;
      const range = half > 0 ? ` (${percent(this.data.levels[level])} of such scores: ${number(value - half)} to ${number(value + half)})` : "";
      const known = gap === 0 ? ` The model was asked: ${number(nearest.score)}.` : nearest ? ` The model was not asked this. The nearest mask asked differs in ${gap} part${gap === 1 ? "" : "s"}: ${number(nearest.score)}.` : "";
      const none = this.asked.find((entry) => entry.mask.every((shown, j) => !shown || f.fixed.includes(j)));
      const empty = none ? number(none.score) : `${number(this.predict(mask.map(() => 0))[0])} by the fit`;
      const ends = ` Nothing hidden: ${number(f.prediction)}, everything hidden: ${empty}.`;
      this.box.querySelector(".predicted").textContent = `${parts}. The fit predicts ${number(value)}${range}.${known}${ends}`;
      this.box.dataset.predicted = JSON.stringify([value, value - half, value + half, gap === 0 ? nearest.score : null]);
    }

    // The model's answers against the fit's predictions.
    dots() {
      const pairs = this.asked.map(({ mask, score }) => [this.predict(mask)[0], score]);
      const all = pairs.flat(), low = Math.min(...all), wide = Math.max(...all) - low || 1;
      const at = (value) => (4 + (92 * (value - low)) / wide).toFixed(1);
      const svg = make("svg", { class: "dots", viewBox: "0 0 100 100", role: "img", "aria-label": "The model's answers (up) against the fit's predictions (across)" });
      make("title", {}, svg, "Up: the model's answers; across: the fit's predictions. On the line they are equal.");
      make("line", { x1: 4, y1: 96, x2: 96, y2: 4, class: "axis" }, svg);
      make("path", { d: pairs.map(([x, y]) => `M${at(x)} ${(100 - at(y)).toFixed(1)}h0`).join("") }, svg);
      this.root.querySelector(".fit").prepend(svg);
    }

    // What the colours mean now: hex colours of the scale, the numbers at its ends, a sentence.
    measured() {
      const d = this.data;
      if (measure !== "mean" && !this.hasIntervals) return { colours: [], most: 1, ends: [], words: "This explanation has no uncertainty." };
      if (measure === "sd") {
        const most = Math.max(...d.sd) || 1; // from zero: equal sds get equal colours
        return { colours: ["#0072b2"], most, ends: ["0", this.number(most)], words: "Uncertainty: posterior sd of the importance." };
      }
      if (measure === "top") {
        const words = `Probability that the feature is among the ${d.k} most important to the surrogate: about the fit.`;
        return { colours: ["#b0006d"], most: 1, ends: ["0", "1"], words };
      }
      const most = Math.max(...d.mean.map(Math.abs)) || 1;
      const ends = [this.number(-most), "0", this.number(most)];
      return { colours: ["#d55e00", "#009e73"], most, ends, words: `Importance${this.times}: green raises the score, orange lowers it.${this.hasIntervals ? " A colour is as strong as the end of the interval nearest to zero." : ""}` };
    }

    shade(position, scale) {
      const d = this.data, { colours, most } = scale;
      if (!colours.length) return ["#767676", 0];
      if (measure !== "mean") return [colours[0], (d.strength * strength * d[measure][position]) / most];
      if (this.colour(position) === "var(--neutral)") return ["#767676", 0];
      return [colours[d.mean[position] > 0 ? 1 : 0], d.strength * strength * this.least(position)];
    }

    // What is certain of an importance: the end of the interval nearest to zero, as a share of the largest mean.
    least(position) {
      const d = this.data, most = Math.max(...d.mean.map(Math.abs)) || 1;
      if (this.colour(position) === "var(--neutral)") return 0;
      const end = this.hasIntervals ? (d.mean[position] > 0 ? d.low : d.high)[position][level] : d.mean[position];
      return Math.min(Math.abs(end) / most, 1);
    }

    stops(scale, over) {
      const full = Math.round(100 * this.data.strength * strength * this.cap);
      const mixed = (colour) => `color-mix(in srgb, ${colour} ${full}%, ${over})`;
      return scale.colours.length > 1 ? [mixed(scale.colours[0]), over, mixed(scale.colours[1])] : [over, ...scale.colours.map(mixed)];
    }

    tint() {
      const scale = this.measured();
      for (const mark of this.marks) {
        const position = this.positions.get(Number(mark.dataset.feature));
        if (position === undefined) continue;
        const [colour, opacity] = this.shade(position, scale);
        if (mark instanceof SVGElement) {
          mark.style.fill = colour;
          mark.style.fillOpacity = String(opacity);
          mark.classList.toggle("unsure", this.hasIntervals && this.colour(position) === "var(--neutral)");
        } else {
          mark.style.backgroundColor = `color-mix(in srgb, ${colour} ${Math.round(100 * this.cap * opacity)}%, transparent)`;
          const certain = this.hasIntervals && this.colour(position) !== "var(--neutral)";
          const share = certain ? this.data.strength * this.least(position) : 0; // how strong and thick the line is
          mark.style.borderBottomColor = certain ? `color-mix(in srgb, ${this.colour(position)} ${Math.round(40 + 60 * share)}%, transparent)` : "transparent";
          mark.style.borderBottomWidth = `${0.05 + 0.25 * share}em`;
        }
      }
      const unsure = this.hasIntervals && this.data.mean.some(Boolean) && !this.anyCertain();
      this.root.querySelector(".nothing").hidden = !unsure;
      if (this.box) this.showHidden();
      this.explain(scale);
    }

    anyCertain() {
      return this.rows.some((_, k) => this.colour(k) !== "var(--neutral)");
    }

    explain(scale) {
      if (!this.legend) return;
      this.legend.replaceChildren();
      const coloured = measure !== "mean" || this.anyCertain();
      if (scale.ends.length && coloured) {
        const bar = make("span", { class: "scale" }, make("span", { class: "scale-box" }, this.legend));
        const two = measure === "mean" && this.hasIntervals;
        bar.classList.toggle("two", two);
        bar.style.background = `${two ? "linear-gradient(to top, transparent, var(--paper)), " : ""}linear-gradient(to right, ${this.stops(scale, "transparent").join(", ")})`;
        const ends = make("span", { class: "ends-of-scale" }, bar.parentNode);
        for (const end of scale.ends) make("span", {}, ends, end);
        if (two) {
          const widths = make("span", { class: "widths" });
          bar.after(widths);
          for (const text of ["interval \u00b1100\u00a0%", "interval \u00b10"]) make("span", {}, widths, text);
        }
      }
      const chosen = percent(this.data.levels[level]);
      const hatch = this.root.querySelector("figure .hatch") ? "Hatched" : "Without colour";
      const uncoloured = this.hasIntervals && (measure === "mean" || hatch === "Hatched") ? ` ${hatch}: the ${chosen} interval contains zero.` : "";
      const underlined = this.isText && this.hasIntervals && coloured ? ` Underlined: the ${chosen} interval excludes zero; thicker: more important.` : "";
      const below = this.root.querySelector("figure image") && coloured ? " Light and dark come from the picture." : "";
      make("span", { class: "scale-words" }, this.legend, ((coloured ? scale.words : "") + uncoloured + underlined + below).trim());
    }

    tools() {
      const box = make("div", { class: "tools" });
      if (this.photo) {
        const input = this.photo.cloneNode(true); // the untouched photo
        for (const name of ["tabindex", "role", "aria-label"]) input.removeAttribute(name);
        input.setAttribute("class", "input");
        input.setAttribute("aria-hidden", "true");
        input.querySelector(".superpixels").remove();
        this.photo.before(input);
        const lens = zoomable(this.photo);
        for (const [sign, name, act] of [["+", "Zoom in", () => lens.zoom(1.5)], ["\u2212", "Zoom out", () => lens.zoom(1 / 1.5)], ["1:1", "Whole photo", lens.reset]]) {
          make("button", { type: "button", "aria-label": name, title: name }, box, sign).addEventListener("click", act);
        }
        make("button", { type: "button", class: "png" }, box, "Save PNG").addEventListener("click", () => this.savePicture());
      }
      make("button", { type: "button", class: "csv" }, box, "Save CSV").addEventListener("click", () => this.saveTable());
      const details = this.root.querySelector(".meaning");
      if (this.legend) this.legend.after(box);
      else details.before(box);
    }

    fileName() {
      return this.data.label.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "").slice(0, 40) || "explanation";
    }

    saveTable() {
      const d = this.data, share = Math.round(100 * d.levels[level]);
      const head = ["feature", ...(d.value ? ["value"] : []), "mean"];
      if (this.hasIntervals) head.push("sd", `low_${share}`, `high_${share}`, "prob_positive", `prob_top_${d.k}`);
      const rows = d.name.map((name, position) => [
        name, ...(d.value ? [d.value[position]] : []), d.mean[position],
        ...(this.hasIntervals ? [d.sd[position], d.low[position][level], d.high[position][level], d.positive[position], d.top[position]] : []),
      ]);
      const index = this.shownIndex ? `-${this.shownIndex}` : "";
      saveFile(`${this.fileName()}${index}.csv`, new Blob([csvText([head, ...rows])], { type: "text/csv" }));
    }

    async savePicture() {
      const scale = this.measured(), grey = document.getElementById("grey").checked;
      const stops = scale.colours.length ? this.stops(scale, "white") : ["white", "white"];
      const cautions = [...this.root.querySelectorAll(".cautions p:not([hidden])")];
      const title = [this.root.querySelector("h2"), ...cautions].map((node) => node.textContent).join("; ");
      const blob = await pictureOf(this.photo, { grey, title, legend: { ...scale, stops } });
      saveFile(`${this.fileName()}.png`, blob);
    }

    choose(position) {
      this.chosen = position;
      const feature = String(this.data.index[position]);
      for (const old of this.root.querySelectorAll(".halo")) old.remove();
      for (const node of this.marks) {
        const on = node.dataset.feature === feature;
        node.classList.toggle("chosen", on);
        if (on && node instanceof SVGElement) this.halo(node);
      }
      this.rows.forEach((row, k) => {
        row.classList.toggle("chosen", k === position);
        row.tabIndex = k === position ? 0 : -1;
      });
      const hidden = this.rows[position].classList.contains("more") && !this.root.classList.contains("open");
      if (hidden) this.rows[0].tabIndex = 0;
      this.cross();
      this.describe(position);
    }

    // A dark and a light line around an SVG shape of any kind.
    halo(node) {
      for (const kind of ["outer", "inner"]) {
        const line = node.cloneNode(false);
        for (const name of ["id", "style", "data-feature"]) line.removeAttribute(name);
        line.setAttribute("class", `halo ${kind}`);
        node.parentNode.append(line);
      }
    }

    describe(position) {
      const d = this.data, box = this.detail;
      box.replaceChildren();
      make("bdi", {}, make("h3", {}, box), this.rows[position].querySelector("bdi").textContent);
      const list = make("dl", {}, box);
      const add = (head, text, kind = "exact") => { make("dt", {}, list, head); make("dd", { class: kind }, list, text); };
      if (d.value) add("value", d.value[position], "");
      if (d.place) add("place", this.rows[position].querySelector("small").textContent, "");
      const ends = this.hasIntervals ? this.ends(position, this.usual) : { decimals: this.decimals };
      add("importance", this.number(d.mean[position], ends.decimals));
      if (!this.hasIntervals) {
        make("p", {}, box, "A point estimate, or too few masks: no intervals, no probabilities.");
        return;
      }
      add(percent(d.levels[level]), ends.text);
      add("sd", this.precise(d.sd[position], position));
      add("P(> 0)", chance(d.positive[position]));
      add(`P(top ${d.k})`, chance(d.top[position]));
      if (this.power) make("p", { class: "small" }, box, `Importance, interval and sd are${this.times}.`);
      make("p", { class: "small" }, box, `P(top ${d.k}) is about the fit of the surrogate.`);
      if (d.density.length && d.to[position] > d.from[position]) this.density(box, position);
    }

    density(box, position) {
      const d = this.data, from = d.from[position], to = d.to[position], heights = d.density[position];
      const wide = 300, tall = 120, base = 100;
      const left = Math.min(from, to > 0 && from > 0 && from < 0.6 * to ? 0 : from);
      const right = Math.max(to, from < 0 && to < 0 && to > 0.6 * from ? 0 : to);
      const x = (value) => 6 + (288 * (value - left)) / (right - left);
      const at = (k) => from + ((to - from) * k) / (heights.length - 1);
      const y = (height) => base - 0.09 * height;
      const svg = make("svg", { viewBox: `0 0 ${wide} ${tall}`, role: "img", "aria-label": "Posterior density" }, box);
      const points = heights.map((height, k) => [at(k), height]);
      const line = (list) => list.map(([value, height], k) => `${k ? "L" : "M"}${x(value).toFixed(1)} ${y(height).toFixed(1)}`).join("");
      const between = (value) => {
        const k = Math.min(Math.max(((value - from) / (to - from)) * (heights.length - 1), 0), heights.length - 1);
        const below = Math.min(Math.floor(k), heights.length - 2);
        return heights[below] + (k - below) * (heights[below + 1] - heights[below]);
      };
      const low = Math.max(d.low[position][level], from), high = Math.min(d.high[position][level], to);
      const within = [[low, between(low)], ...points.filter(([value]) => value > low && value < high), [high, between(high)]];
      const shade = make("path", { d: `${line(within)}L${x(high)} ${base}L${x(low)} ${base}Z`, class: "shade" }, svg);
      shade.style.fill = this.colour(position);
      make("path", { d: line(points), class: "curve" }, svg);
      make("line", { x1: 0, x2: wide, y1: base, y2: base, class: "axis" }, svg);
      if (left <= 0 && right >= 0) {
        make("line", { x1: x(0), x2: x(0), y1: 4, y2: base, class: "zero" }, svg);
        make("text", { x: x(0), y: tall - 6, "text-anchor": "middle" }, svg, "0");
      }
      for (const value of [low, high]) {
        if (Math.abs(x(value) - x(0)) > 24 || left > 0 || right < 0) {
          make("text", { x: Math.min(Math.max(x(value), 18), wide - 18), y: tall - 6, "text-anchor": "middle" }, svg, this.precise(value, position));
        }
      }
    }
  }

  for (const root of document.querySelectorAll(".explanation")) sections.push(new Section(root));
  document.getElementById("level").addEventListener("input", (event) => {
    level = Number(event.target.value);
    const words = percent(sections[0].data.levels[level]);
    event.target.setAttribute("aria-valuetext", words);
    document.getElementById("level-shown").textContent = words;
    for (const section of sections) {
      section.paint();
      section.choose(section.chosen);
    }
  });
  for (const radio of document.querySelectorAll("input[name=measure]")) {
    radio.addEventListener("change", () => {
      measure = radio.value;
      for (const section of sections) section.tint();
    });
  }
  document.getElementById("strength").addEventListener("input", (event) => {
    strength = Number(event.target.value) / 100;
    event.target.setAttribute("aria-valuetext", percent(strength));
    for (const section of sections) section.tint();
  });
  if (!sections.some((section) => section.marks.length)) {
    for (const name of ["measure", "strength"]) document.querySelector(`.controls .${name}`).hidden = true;
  }
  document.getElementById("hiding")?.addEventListener("change", (event) => {
    hiding = event.target.checked;
    document.body.classList.toggle("hiding", hiding);
    for (const section of sections) section.tint();
  });
  const grey = document.getElementById("grey");
  if (!document.querySelector(".photo")) grey.parentNode.hidden = true;
  grey.addEventListener("change", () => document.body.classList.toggle("colour", !grey.checked));
  if (!sections.some((section) => section.hasIntervals)) {
    document.querySelector(".controls .level").hidden = true;
    document.querySelector(".controls .measure").hidden = true;
  }
  const root = document.documentElement;
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
})();
