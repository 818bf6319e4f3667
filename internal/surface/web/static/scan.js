// The help desk's camera: where the browser reads barcodes, a button shows the camera, and
// the first code that it finds is looked for. Nothing leaves the browser but its text.
(() => {
  "use strict";
  const form = document.querySelector("[data-scan]");
  const start = form?.querySelector("[data-scan-start]");
  if (!start || !("BarcodeDetector" in window) || !navigator.mediaDevices?.getUserMedia) return;
  const view = form.querySelector("[data-scan-view]"), wrong = form.querySelector("[data-scan-wrong]");
  const says = start.querySelector("span"), offer = says.textContent;
  let stream = null;
  const stop = () => {
    stream?.getTracks().forEach((track) => track.stop());
    stream = view.srcObject = null;
    view.hidden = true;
    says.textContent = offer;
  };
  const look = async (detector) => {
    if (!stream) return;
    const [code] = await detector.detect(view).catch(() => []);
    const text = code?.rawValue.trim();
    if (!text) return void setTimeout(look, 200, detector);
    stop();
    form.elements.q.value = text.slice(0, 200);
    form.requestSubmit();
  };
  start.addEventListener("click", async () => {
    if (stream) return stop();
    try {
      wrong.hidden = true;
      stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
      view.srcObject = stream;
      view.hidden = false;
      says.textContent = "Stop the camera";
      await view.play();
      look(new BarcodeDetector());
    } catch {
      stop();
      wrong.hidden = false;
    }
  });
  window.addEventListener("pagehide", stop);
  start.hidden = false;
})();
