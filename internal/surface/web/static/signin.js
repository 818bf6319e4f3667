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
      // What was typed becomes part of what is signed: the service answers another challenge.
      let asked = form.dataset.options && JSON.parse(form.dataset.options);
      if (!asked || [...form.querySelectorAll("[data-typed]")].some((field) => field.value.trim())) {
        const reply = await (window.portal?.ask ?? fetch)(form.action, { method: "POST", headers: { Accept: "application/json" }, body: new URLSearchParams(new FormData(form)) });
        if (reply === null) return; // the session has ended, and the page says so
        const answer = await reply.json().catch(() => ({}));
        if (!answer.token) {
          problem.textContent = answer.problem || "It did not work. Open the page again.";
          return;
        }
        form.elements.token.value = answer.token;
        asked = answer.options;
      }
      const options = asked.publicKey;
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
