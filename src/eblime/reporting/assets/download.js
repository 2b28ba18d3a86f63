// Files are created in the browser; nothing is sent.
function saveFile(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// Rows as CSV; text that a spreadsheet would run as a formula gets an apostrophe.
function csvText(rows) {
  const cell = (value) => {
    if (typeof value === "number") return String(value);
    const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

// The photo with its colours and a legend below, as a PNG.
async function pictureOf(svg, { grey, title, legend }) {
  const image = svg.querySelector("image");
  const [wide, tall] = [Number(image.getAttribute("width")), Number(image.getAttribute("height"))];
  const photo = new Image();
  photo.src = image.getAttribute("href");
  await photo.decode();
  const scale = Math.max(photo.naturalWidth, 640) / wide, foot = 96;
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(scale * wide);
  canvas.height = Math.round(scale * tall) + foot;
  const pen = canvas.getContext("2d");
  pen.fillStyle = "#fff";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.imageSmoothingEnabled = !image.classList.contains("pixels");
  pen.filter = grey ? "grayscale(1)" : "none";
  pen.drawImage(photo, 0, 0, canvas.width, canvas.height - foot);
  pen.filter = "none";
  pen.save();
  pen.scale(scale, scale);
  pen.lineWidth = 1 / scale;
  for (const path of svg.querySelectorAll("path:not(.halo)")) {
    const shape = new Path2D(path.getAttribute("d"));
    pen.globalAlpha = path.style.fill ? Number(path.style.fillOpacity) : 0;
    pen.fillStyle = path.style.fill || "#000";
    pen.fill(shape, "evenodd");
    pen.globalAlpha = 0.45;
    pen.strokeStyle = "#fff";
    pen.stroke(shape);
  }
  pen.restore();
  const top = canvas.height - foot;
  pen.fillStyle = "#1d1f21";
  pen.font = "16px system-ui, sans-serif";
  pen.fillText(title, 12, top + 24, canvas.width - 24);
  pen.font = "13px system-ui, sans-serif";
  pen.fillText(legend.words, 12, top + 44, canvas.width - 24);
  const bar = pen.createLinearGradient(12, 0, 252, 0);
  legend.stops.forEach((stop, k) => bar.addColorStop(k / (legend.stops.length - 1), stop));
  pen.fillStyle = bar;
  pen.fillRect(12, top + 54, 240, 12);
  pen.strokeStyle = "#999";
  pen.strokeRect(12, top + 54, 240, 12);
  pen.fillStyle = "#1d1f21";
  legend.ends.forEach((end, k) => {
    pen.textAlign = k === 0 ? "left" : k === legend.ends.length - 1 ? "right" : "center";
    pen.fillText(end, 12 + (240 * k) / (legend.ends.length - 1), top + 84);
  });
  return new Promise((resolve) => { canvas.toBlob(resolve, "image/png"); });
}
