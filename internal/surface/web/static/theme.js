// Chooses light or dark before anything is painted: the person's choice, else
// the system's. Paper is light.
(() => {
  const system = matchMedia("(prefers-color-scheme: dark)"), paper = matchMedia("print");
  const apply = () => {
    const choice = localStorage.getItem("theme");
    document.documentElement.classList.toggle("dark", !paper.matches && (choice ? choice === "dark" : system.matches));
  };
  apply();
  system.addEventListener("change", apply);
  paper.addEventListener("change", apply);
  addEventListener("storage", apply);
})();
