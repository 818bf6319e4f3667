// The client of the recipes: types from the OpenAPI document, and patience.
import createClient from "openapi-fetch";
import type { paths } from "./muster-api.ts"; // generated, see README.md

// setting reads a required variable of the environment.
export function setting(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`set ${name}`);
  return value;
}

// mayRepeat tells if the service says that the same call may be sent again.
async function mayRepeat(response: Response): Promise<boolean> {
  if (response.status === 429) return true;
  if (response.ok) return false;
  const problem = await response.clone().json().catch(() => ({}));
  return problem.retryable === true || problem.code === "idempotency_in_flight";
}

// patient sends a call again after a lost answer, and when the service says so.
// Every call that writes has an Idempotency-Key, so that it takes effect once.
async function patient(request: Request): Promise<Response> {
  for (let attempt = 0; ; attempt++) {
    let seconds = Math.min(2 ** attempt, 60);
    try {
      const response = await fetch(request.clone());
      if (attempt === 60 || !(await mayRepeat(response))) return response;
      seconds = Number(response.headers.get("Retry-After") ?? seconds);
    } catch (failure) {
      if (attempt === 60) throw failure;
    }
    await new Promise((done) => setTimeout(done, seconds * 1000));
  }
}

export const muster = createClient<paths>({
  baseUrl: setting("MUSTER_URL") + "/api/v1",
  headers: { "X-API-Key": setting("MUSTER_API_KEY") },
  fetch: patient,
});

// said is what an error says, for a line of output.
export function said(error: { detail?: string; message?: string } | undefined): string {
  return error?.detail ?? error?.message ?? "no answer";
}
