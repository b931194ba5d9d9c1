// A treemap: rectangles whose areas are sizes, nearly square (Bruls, Huizing and van Wijk: squarified treemaps).

import { svg } from "./dom.js";

/** Rectangles for `sizes`, which are positive and descending, in a rectangle. In the order of `sizes`. */
export function squarify(sizes, x, y, width, height) {
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const scale = (width * height) / total;
  const areas = sizes.map((size) => size * scale);
  const rectangles = [];
  let free = { x, y, width, height };
  for (let first = 0; first < areas.length;) {
    const side = Math.min(free.width, free.height);
    let end = first + 1;
    let sum = areas[first];
    while (
      end < areas.length &&
      worst(areas, first, end + 1, sum + areas[end], side) <= worst(areas, first, end, sum, side)
    ) {
      sum += areas[end];
      end += 1;
    }
    free = layRow(areas.slice(first, end), sum, free, rectangles);
    first = end;
  }
  return rectangles;
}

/** The worst ratio of sides in a row with the areas from `first` to `end`. */
function worst(areas, first, end, sum, side) {
  const squared = (side * side) / (sum * sum);
  return Math.max(areas[first] * squared, 1 / (areas[end - 1] * squared));
}

/** Puts a row along the shorter side. Returns the rectangle that stays free. */
function layRow(row, sum, { x, y, width, height }, rectangles) {
  const isColumn = width >= height;
  const depth = sum / (isColumn ? height : width);
  let at = isColumn ? y : x;
  for (const area of row) {
    const length = area / depth;
    rectangles.push(
      isColumn ? { x, y: at, width: depth, height: length } : { x: at, y, width: length, height: depth },
    );
    at += length;
  }
  return isColumn
    ? { x: x + depth, y, width: Math.max(width - depth, 0), height }
    : { x, y: y + depth, width, height: Math.max(height - depth, 0) };
}

const WIDTH = 960;
const HEIGHT = 420;
const LETTER = 7.2;

/** The picture of `items`: `{name, size, title, isFolder, open}`, the largest first. `open` is called for a click. */
export function treemap(items) {
  const shown = items.filter((item) => item.size > 0);
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "treemap", "aria-hidden": "true" });
  const rectangles = squarify(
    shown.map((item) => item.size),
    0,
    0,
    WIDTH,
    HEIGHT,
  );
  rectangles.forEach((rectangle, index) => picture.append(tile(shown[index], rectangle, index)));
  return picture;
}

function tile(item, { x, y, width, height }, index) {
  const group = svg("g", {
    class: `tile shade-${index % 6}${item.open ? " opens" : ""}`,
    onclick: item.open,
  });
  const inner = {
    x: x + 1,
    y: y + 1,
    width: Math.max(width - 2, 0.5),
    height: Math.max(height - 2, 0.5),
    rx: 3,
  };
  group.append(svg("title", {}, item.title), svg("rect", inner));
  const letters = Math.floor((width - 14) / LETTER);
  if (height > 24 && letters > 3) {
    const text = item.name.length > letters ? `${item.name.slice(0, letters - 1)}…` : item.name;
    group.append(svg("text", { x: x + 8, y: y + 19 }, text));
  }
  if (height > 44 && letters > 8) {
    group.append(svg("text", { x: x + 8, y: y + 36, class: "amount" }, item.amount));
  }
  return group;
}
