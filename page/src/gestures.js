// Mouse, pen, fingers, wheel and keys on the map.

const MOVED = 4; // pixels that tell a drag from a click
const TOUCH_REACH = 18;

// `on` has: hover(px, py), leave(), click(px, py, event), lassoDraw(path), lassoEnd(path, event), mode() → "pan" | "lasso".
export function listen(stage, camera, on) {
  const pointers = new Map();
  let start = null;
  let path = null;
  let pinch = null;

  const at = (event) => {
    const box = stage.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  const spread = () => {
    const [[ax, ay], [bx, by]] = [...pointers.values()];
    return { distance: Math.hypot(ax - bx, ay - by), x: (ax + bx) / 2, y: (ay + by) / 2 };
  };

  stage.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.target.closest("[data-control]")) return;
    stage.focus({ preventScroll: true });
    stage.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, at(event));
    if (pointers.size === 2) {
      pinch = spread();
      [start, path] = [null, null];
      on.lassoDraw(null);
      return;
    }
    start = { px: at(event)[0], py: at(event)[1], moved: false };
    const lasso = on.mode() === "lasso" || event.shiftKey;
    path = lasso ? [at(event)] : null;
  });

  stage.addEventListener("pointermove", (event) => {
    const [px, py] = at(event);
    if (!pointers.has(event.pointerId)) {
      if (event.pointerType !== "touch" && !event.target.closest("[data-control]")) on.hover(px, py);
      else on.leave();
      return;
    }
    const [lastX, lastY] = pointers.get(event.pointerId);
    pointers.set(event.pointerId, [px, py]);
    if (pinch && pointers.size === 2) {
      const now = spread();
      camera.zoomAt(now.distance / Math.max(pinch.distance, 1), now.x, now.y);
      camera.pan(now.x - pinch.x, now.y - pinch.y);
      pinch = now;
      return;
    }
    if (!start) return;
    if (!start.moved && Math.hypot(px - start.px, py - start.py) < MOVED) return;
    start.moved = true;
    on.leave();
    if (path) {
      path.push([px, py]);
      on.lassoDraw(path);
    } else {
      stage.classList.add("dragging");
      camera.pan(px - lastX, py - lastY);
    }
  });

  const end = (event) => {
    if (!pointers.delete(event.pointerId)) return;
    stage.classList.remove("dragging");
    if (pinch) {
      if (pointers.size < 2) pinch = null;
      start = null;
      return;
    }
    if (!start) return;
    const [px, py] = at(event);
    if (event.type === "pointercancel") on.lassoDraw(null);
    else if (start.moved && path) on.lassoEnd(path, event);
    else if (!start.moved) on.click(px, py, event.pointerType === "touch" ? TOUCH_REACH : 6, event);
    [start, path] = [null, null];
  };
  stage.addEventListener("pointerup", end);
  stage.addEventListener("pointercancel", end);
  stage.addEventListener("pointerleave", () => on.leave());

  stage.addEventListener(
    "wheel",
    (event) => {
      if (event.target.closest("[data-scrolls]")) return;
      event.preventDefault();
      const lines = event.deltaMode === 1 ? 18 : 1;
      const step = Math.max(-120, Math.min(120, event.deltaY * lines));
      camera.zoomAt(Math.exp(-step * (event.ctrlKey ? 0.01 : 0.0025)), ...at(event));
    },
    { passive: false },
  );

  stage.addEventListener("dblclick", (event) => {
    if (event.target.closest("[data-control]")) return;
    const [px, py] = at(event);
    const [x, y] = camera.toMap(px, py);
    camera.fly({ x, y, zoom: camera.zoom * 2 }, 250);
  });
}

// Keys for the whole page; `actions` maps a key to what it does. Fields of text keep their keys.
export function listenToKeys(actions, stage, camera) {
  const moves = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, select, textarea");
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      actions.Escape(event);
      return;
    }
    if (typing) return;
    if (moves[event.key] && (event.target === stage || event.target === document.body)) {
      camera.pan(...moves[event.key]);
      event.preventDefault();
      return;
    }
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (action) {
      action(event);
      event.preventDefault();
    }
  });
}
