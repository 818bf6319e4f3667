// Draws the outlines of world-atlas: land, and the borders between countries,
// in degrees east of 180° W and south of 90° N, to a twentieth of a degree.
import { readFileSync, writeFileSync } from "node:fs";

const topology = JSON.parse(readFileSync("node_modules/world-atlas/countries-110m.json", "utf8"));
const { scale, translate } = topology.transform;
const round = (n) => Math.round(n * 20) / 20;
const arcs = topology.arcs.map((arc) => {
  let x = 0, y = 0;
  return arc.map(([dx, dy]) => {
    x += dx; y += dy;
    return [round(x * scale[0] + translate[0] + 180), round(90 - (y * scale[1] + translate[1]))];
  });
});
const points = (index) => index < 0 ? [...arcs[~index]].reverse() : arcs[index];
const path = (line, closed) => {
  const kept = line.filter((p, i) => i === 0 || p[0] !== line[i - 1][0] || p[1] !== line[i - 1][1]);
  return kept.length < 2 ? "" : "M" + kept.map((p) => p.join(" ")).join("L") + (closed ? "Z" : "");
};
const rings = (g) => (g.type === "Polygon" ? g.arcs : g.arcs.flat()).map((ring) => ring.flatMap((i, n) => points(i).slice(n ? 1 : 0)));
const land = topology.objects.land.geometries.flatMap(rings).map((r) => path(r, true)).join("");
const uses = new Map();
for (const country of topology.objects.countries.geometries) {
  for (const ring of country.type === "Polygon" ? country.arcs : country.arcs.flat()) {
    for (const i of ring) uses.set(i < 0 ? ~i : i, (uses.get(i < 0 ? ~i : i) ?? 0) + 1);
  }
}
const borders = [...uses].filter(([, n]) => n > 1).map(([i]) => path(arcs[i], false)).join("");
writeFileSync(process.argv[2], `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 360 180"><path id="land" fill="currentColor" d="${land}"/><path id="borders" fill="none" stroke="currentColor" stroke-width=".75" vector-effect="non-scaling-stroke" d="${borders}"/></svg>\n`);
