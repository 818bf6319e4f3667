// Passkeys, and the code of an invitation that the address brings along.
(() => {
  "use strict";
  const words = (error) => error.name === "NotAllowedError" ? "Nothing was confirmed. Try again when you are ready."
    : error.name === "InvalidStateError" ? "This passkey is known already."
    : "This browser could not do it: " + error.message;
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.dataset.passkey || form.elements.answer.value) return;
    event.preventDefault();
    const problem = form.querySelector("[data-problem]");
    problem.textContent = "";
    try {
      const options = JSON.parse(form.dataset.options).publicKey;
      const credential = form.dataset.passkey === "create"
        ? await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) })
        : await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) });
      form.elements.answer.value = JSON.stringify(credential.toJSON());
      form.requestSubmit();
    } catch (error) {
      problem.textContent = words(error);
    }
  });
  const code = document.querySelector("input[data-invitation]");
  if (code && location.hash.length > 1) {
    code.value = location.hash.slice(1);
    history.replaceState(null, "", location.pathname);
  }
  document.querySelector("a[data-go-now]")?.click();
})();
