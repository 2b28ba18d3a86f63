"use strict";
// Zoom and pan of a drawing by its viewBox: buttons, double click, Ctrl and wheel, dragging, + - 0.
function zoomable(svg) {
  const { x, y, width, height } = svg.viewBox.baseVal;
  const whole = { x, y, width, height };
  let view = { ...whole };
  const show = () => {
    view.x = Math.min(Math.max(view.x, whole.x), whole.x + whole.width - view.width);
    view.y = Math.min(Math.max(view.y, whole.y), whole.y + whole.height - view.height);
    svg.setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.height}`);
    svg.classList.toggle("zoomed", view.width < whole.width);
  };
  const position = (event) => {
    const box = svg.getBoundingClientRect();
    const scale = Math.max(view.width / box.width, view.height / box.height);
    return {
      x: view.x + view.width / 2 + scale * (event.clientX - box.left - box.width / 2),
      y: view.y + view.height / 2 + scale * (event.clientY - box.top - box.height / 2),
      scale,
    };
  };
  const zoom = (factor, at = { x: view.x + view.width / 2, y: view.y + view.height / 2 }) => {
    const size = Math.min(Math.max(view.width / factor, whole.width / 16), whole.width) / view.width;
    view = {
      x: at.x - size * (at.x - view.x), y: at.y - size * (at.y - view.y),
      width: size * view.width, height: size * view.height,
    };
    show();
  };
  const reset = () => { view = { ...whole }; show(); };
  svg.addEventListener("dblclick", (event) => { event.preventDefault(); zoom(2, position(event)); });
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return; // without it the page scrolls
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.25 : 0.8, position(event));
  }, { passive: false });
  svg.addEventListener("keydown", (event) => {
    if (event.key === "+" || event.key === "=") zoom(1.5);
    else if (event.key === "-") zoom(1 / 1.5);
    else if (event.key === "0") reset();
  });
  let held = null;
  svg.addEventListener("pointerdown", (event) => {
    if (event.button === 0 && view.width < whole.width) held = event;
  });
  addEventListener("pointermove", (event) => {
    if (!held || event.pointerId !== held.pointerId) return;
    const { scale } = position(event);
    view.x -= scale * (event.clientX - held.clientX);
    view.y -= scale * (event.clientY - held.clientY);
    held = event;
    show();
  });
  for (const kind of ["pointerup", "pointercancel"]) addEventListener(kind, () => { held = null; });
  return { zoom, reset };
}
