// How many points there are, seen from afar: a soft field under the points that fades as one comes closer.

const SIZE = 256;

// A count of points per cell, blurred twice; `raster` counts points that are not on the page too.
function field(points, raster) {
  let counts = new Float32Array(SIZE * SIZE);
  if (raster) counts.set(raster);
  else {
    for (let i = 0; i < points.length; i += 2) {
      const column = Math.min(SIZE - 1, Math.floor(((points[i] + 1) / 2) * SIZE));
      const row = Math.min(SIZE - 1, Math.floor(((points[i + 1] + 1) / 2) * SIZE));
      counts[row * SIZE + column]++;
    }
  }
  for (let round = 0; round < 3; round++) counts = blurred(blurred(counts, 1), SIZE);
  return counts;
}

// A running mean of five cells along one axis.
function blurred(counts, step) {
  const out = new Float32Array(counts.length);
  const across = step === 1 ? SIZE : 1;
  for (let line = 0; line < SIZE; line++) {
    for (let k = 0; k < SIZE; k++) {
      let sum = 0;
      for (let d = -2; d <= 2; d++) {
        const at = k + d;
        if (at >= 0 && at < SIZE) sum += counts[line * across + at * step];
      }
      out[line * across + k * step] = sum / 5;
    }
  }
  return out;
}

export class Density {
  constructor(canvas) {
    this.canvas = canvas;
    this.image = document.createElement("canvas");
    this.image.width = this.image.height = SIZE;
  }

  // `ink` is [r, g, b]; n is how many points the field stands for.
  set(points, raster, ink, n) {
    const counts = field(points, raster);
    const most = counts.reduce((a, b) => Math.max(a, b), 1e-9);
    const context = this.image.getContext("2d");
    const pixels = context.createImageData(SIZE, SIZE);
    for (let row = 0; row < SIZE; row++) {
      for (let column = 0; column < SIZE; column++) {
        const share = Math.sqrt(counts[row * SIZE + column] / most);
        const at = ((SIZE - 1 - row) * SIZE + column) * 4;
        pixels.data.set([...ink, Math.round(150 * share)], at);
      }
    }
    context.putImageData(pixels, 0, 0);
    this.strength = Math.min(1, Math.max(0, (Math.log10(Math.max(n, 1)) - 3.7) / 1.3));
  }

  draw(camera) {
    const { canvas } = this;
    const alpha = this.strength * Math.min(1, Math.max(0, 1.5 - Math.log2(camera.zoom) / 2));
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(camera.width * ratio);
    canvas.height = Math.round(camera.height * ratio);
    if (alpha <= 0.01) return;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.globalAlpha = alpha * 0.5;
    const [x, y] = camera.toScreen(-1, 1);
    context.imageSmoothingQuality = "high";
    context.drawImage(this.image, x, y, 2 * camera.scale, 2 * camera.scale);
  }
}
