// Collects the icons of icons.txt into one sprite.
import { readFileSync, writeFileSync, existsSync } from "node:fs";

const symbols = readFileSync("icons.txt", "utf8").split("\n").filter(Boolean).map((name) => {
  const file = `node_modules/lucide-static/icons/${name}.svg`;
  if (!existsSync(file)) throw new Error(`no icon ${name}`);
  const inner = readFileSync(file, "utf8").replace(/<!--.*?-->/s, "").replace(/^.*?<svg[^>]*>/s, "").replace(/<\/svg>\s*$/s, "").replace(/\s+/g, " ").trim();
  return `<symbol id="${name}" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.75" stroke-linecap="round" stroke-linejoin="round">${inner}</symbol>`;
});
writeFileSync(process.argv[2], `<svg xmlns="http://www.w3.org/2000/svg">\n${symbols.join("\n")}\n</svg>\n`);
