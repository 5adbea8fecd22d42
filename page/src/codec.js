// Arrays and texts out of the parts of the page: base64 → gzip → byte planes → differences. See explore/pack.py.

const TYPES = {
  u1: Uint8Array,
  u2: Uint16Array,
  u4: Uint32Array,
  i1: Int8Array,
  i2: Int16Array,
  i4: Int32Array,
  f4: Float32Array,
  f8: Float64Array,
};

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

// The bytes of a part, whose text leaves the document: they are read once.
async function readBytes(id) {
  const element = document.getElementById(id);
  const text = element.textContent.trim();
  element.remove();
  const stream = new Blob([fromBase64(text)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function fromPlanes(bytes, size) {
  if (size === 1) return bytes;
  const n = bytes.length / size;
  const joined = new Uint8Array(bytes.length);
  for (let plane = 0; plane < size; plane++) {
    for (let i = 0, from = plane * n, to = plane; i < n; i++, from++, to += size) joined[to] = bytes[from];
  }
  return joined;
}

const read = new Map();

// The typed array of a specification that Parts.array returned.
export function readArray(spec) {
  if (!read.has(spec.part)) {
    read.set(
      spec.part,
      readBytes(spec.part).then((bytes) => {
        const values = new TYPES[spec.type](fromPlanes(bytes, TYPES[spec.type].BYTES_PER_ELEMENT).buffer, 0, spec.n);
        if (spec.diff) for (let i = 1; i < values.length; i++) values[i] += values[i - 1];
        return values;
      }),
    );
  }
  return read.get(spec.part);
}

// Texts: get(i) is the i-th.
export async function readStrings(spec) {
  const bytes = await readBytes(spec.text);
  const lengths = await readArray(spec.lengths);
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  const starts = new Uint32Array(lengths.length + 1);
  for (let i = 0; i < lengths.length; i++) starts[i + 1] = starts[i] + lengths[i];
  return { n: lengths.length, get: (i) => text.slice(starts[i], starts[i + 1]) };
}

// Numbers as float64, NaN if missing.
export async function readNumbers(spec) {
  const stored = await readArray(spec.array);
  const values = new Float64Array(stored.length);
  if (spec.decimals === null) {
    values.set(stored);
    return values;
  }
  const scale = 10 ** spec.decimals;
  for (let i = 0; i < stored.length; i++) values[i] = stored[i] === 0 ? NaN : (stored[i] - 1 + spec.low) / scale;
  return values;
}

// The shortest decimal of a number that was stored as a float32.
export function shortest(value) {
  for (let digits = 1; digits < 9; digits++) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return String(Number(text));
  }
  return String(Number(value.toPrecision(9)));
}
