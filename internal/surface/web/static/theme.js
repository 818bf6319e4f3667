// Chooses light or dark before anything is painted: the person's choice, else
// the system's.
(() => {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const choice = localStorage.getItem("theme");
    document.documentElement.classList.toggle("dark", choice ? choice === "dark" : system.matches);
  };
  apply();
  system.addEventListener("change", apply);
  addEventListener("storage", apply);
})();
