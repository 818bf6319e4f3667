// Writes which characters look like which others: the prototypes of Unicode's
// confusables.txt (UTS 39), by way of unhomoglyph, in hexadecimal, one
// prototype a line. Characters that NFKD changes are left out, as names are
// compared in it.
import { readFileSync, writeFileSync } from "node:fs";

const hex = (text) => [...text.normalize("NFD")].map((c) => c.codePointAt(0).toString(16)).join("+");
const data = JSON.parse(readFileSync("node_modules/unhomoglyph/data.json", "utf8"));
const lines = new Map();
for (const [source, prototype] of Object.entries(data)) {
  if ([...source].length !== 1 || source.normalize("NFKD") !== source || source === prototype) continue;
  lines.set(hex(prototype), [...(lines.get(hex(prototype)) ?? []), hex(source)]);
}
const text = [...lines].sort(([a], [b]) => (a < b ? -1 : 1)).map(([to, from]) => `${to}:${from.join(",")}\n`).join("");
writeFileSync(process.argv[2], text);
