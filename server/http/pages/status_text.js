// Figures as people read them: with three digits and a unit.
"use strict";

const NOTHING = "–";

// 0.25, 12.3, 457
function threeDigits(value) {
  return String(Number(value.toFixed(value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2)));
}

function scaled(value, units) {
  let unit = 0;
  for (; unit + 1 < units.length && value >= 999.5; ++unit) value /= 1000;
  return threeDigits(value) + units[unit];
}

// "4.57k", "1.2M"; for counts and rates.
function countText(count) {
  return scaled(count, ["", "k", "M", "G", "T"]);
}

// "980 B", "2.31 GB"; powers of 1000.
function bytesText(bytes) {
  return scaled(bytes, [" B", " kB", " MB", " GB", " TB", " PB"]);
}

// "85 µs", "1.24 ms"; null if nothing was measured.
function latencyText(micros) {
  return micros === null ? NOTHING : scaled(micros, [" µs", " ms", " s"]);
}

// "12 s", "5 min 3 s", "2 h 10 min", "3 d 4 h".
function durationText(seconds) {
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const i = Math.max(0, units.findIndex(([size]) => seconds >= size || size === 1));
  const [size, name] = units[i];
  const text = `${Math.floor(seconds / size)} ${name}`;
  if (size === 1) return text;
  const [next, nextName] = units[i + 1];
  return `${text} ${Math.floor((seconds % size) / next)} ${nextName}`;
}

// "50 %"
function shareText(part, rest) {
  return part + rest === 0 ? NOTHING : `${Number(((100 * part) / (part + rest)).toPrecision(3))} %`;
}

function differenceText(difference) {
  return difference === "Infinity" ? "infinite" : String(Number(Number(difference).toPrecision(3)));
}

// "1 input", "2 inputs"
function counted(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

// "float" for DT_FLOAT
function typeText(dtype) {
  return dtype.replace(/^DT_/, "").toLowerCase();
}

// "[N, 3]"; a dimension that is not known, other than the rows, is "?".
function shapeText(shape) {
  if (shape === null) return "any";
  return `[${shape.map((size, i) => (size >= 0 ? size : i === 0 ? "N" : "?")).join(", ")}]`;
}

// How many rows of an input a request may have, in the expansion rule's words.
function rowsText(shape) {
  if (shape === null || shape[0] < 0) return "1 or N";
  if (shape.length === 0) return "one value";
  return shape[0] === 1 ? "1: the user" : "as declared";
}
