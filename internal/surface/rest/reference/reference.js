// Additions to a page that is complete without them: a filter and copy buttons.
const find = document.getElementById("find");
find.parentElement.hidden = false;
find.addEventListener("input", () => {
  const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const article of document.querySelectorAll("article")) {
    const text = article.dataset.find.toLowerCase();
    const away = !words.every((word) => text.includes(word));
    article.hidden = away;
    document.querySelector(`nav li[data-for="${article.id}"]`).hidden = away;
  }
});

for (const block of document.querySelectorAll("pre")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.querySelector("code").textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  if (navigator.clipboard) block.append(button);
}
