// The requests to the server.

import { askForToken, authorization } from "./token.js";

/** An answer that is an error: problem details, as far as the server gives them. */
export class Problem extends Error {
  constructor(status, details) {
    super(details?.title ?? (status ? `The server responded with status ${status}` : "The server cannot be reached"));
    this.status = status;
    this.detail = details?.detail ?? "";
  }
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The answer to a request. Asks for a token, once, if the server wants one. */
async function request(path, options = {}, isAskedAgain = false) {
  let response;
  try {
    const headers = { ...options.headers, ...authorization() };
    response = await fetch(path, { ...options, headers, cache: "no-store", redirect: "error" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0);
  }
  if (response.ok) return response;
  const problem = new Problem(response.status, parsed(await response.text()));
  if (response.status === 401 && !isAskedAgain && (await askForToken(problem.detail))) {
    return request(path, options, true);
  }
  throw problem;
}

const json = async (path, options) => (await request(path, options)).json();

/** `{matchByName, assume}` as parameters; `assume` has pairs of the name of an image and an id. */
function parameters({ matchByName = false, assume = [] } = {}) {
  const query = new URLSearchParams();
  if (matchByName) query.append("match_by_name", "true");
  for (const [name, id] of assume) query.append("assume", `${name}=${id}`);
  return query;
}

/** A report as JSON (docs/schema/symbolicate.schema.json), and after how many seconds more may be known. */
export async function symbolicated(report, options) {
  const headers = { Accept: "application/json", "Content-Type": "application/octet-stream" };
  const query = parameters(options).toString();
  const path = `v1/symbolicate${query && `?${query}`}`;
  const answer = await request(path, { method: "POST", headers, body: report });
  const seconds = Number(answer.headers.get("Retry-After") ?? 5);
  return { data: await answer.json(), retryAfter: Number.isFinite(seconds) ? seconds : 5 };
}

/** A report in its own format, as a blob. */
export async function symbolicatedNative(report, options) {
  const headers = { Accept: "*/*", "Content-Type": "application/octet-stream" };
  const query = parameters(options);
  query.append("format", "native");
  const answer = await request(`v1/symbolicate?${query}`, { method: "POST", headers, body: report });
  return answer.blob();
}

/** The functions at an offset of an image. */
export async function lookup(id, address) {
  const body = JSON.stringify([{ id, addresses: [address] }]);
  const headers = { "Content-Type": "application/json" };
  const [result] = await json("v1/lookup", { method: "POST", headers, body });
  return result;
}

/** The images whose name contains `search`, or whose id begins with it. */
export const images = (search, options) =>
  json(`v1/images?${new URLSearchParams({ search, limit: 100 })}`, options);

/** What the server knows of an image. */
export const image = (id) => json(`v1/images/${encodeURIComponent(id)}`);

/** Uploads a debug file. `onProgress` is called with the part that was sent, 0 to 1. Becomes the job. */
export async function upload(file, name, onProgress, isAskedAgain = false) {
  const { status, body } = await put(file, name, onProgress);
  if (status >= 200 && status < 300) return body;
  const problem = new Problem(status, body);
  if (status === 401 && !isAskedAgain && (await askForToken(problem.detail))) {
    return upload(file, name, onProgress, true);
  }
  throw problem;
}

/** `fetch` does not tell how much of a body was sent. */
function put(file, name, onProgress) {
  return new Promise((resolve, reject) => {
    const sender = new XMLHttpRequest();
    sender.upload.onprogress = ({ loaded, total }) => onProgress(total ? loaded / total : 0);
    sender.onload = () => resolve({ status: sender.status, body: parsed(sender.responseText) });
    sender.onerror = () => reject(new Problem(0));
    sender.open("PUT", `v1/debug-files?${new URLSearchParams({ name })}`);
    for (const [header, value] of Object.entries(authorization())) sender.setRequestHeader(header, value);
    sender.send(file);
  });
}

/** How often a job is asked for again, and after how many milliseconds. */
const FOLLOW_TRIES = 60;
const FOLLOW_PAUSE = 2000;

/** Calls `onState` with each state of a job, until it has ended. Becomes the last state. */
export async function followJob(id, onState) {
  const path = `v1/jobs/${encodeURIComponent(id)}`;
  let job = null;
  for (let tries = 0; tries < FOLLOW_TRIES; tries += 1) {
    try {
      const response = await request(path, { headers: { Accept: "text/event-stream" } });
      for await (const { kind, data } of events(response.body)) {
        job = kind === "progress" ? { ...job, progress: data } : data;
        onState(job);
        if (isEnded(job)) return job;
        tries = 0;
      }
    } catch (error) {
      // Answers are final. If the connection is cut, the server may be starting again, and the job goes on.
      if (error.status) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, FOLLOW_PAUSE));
  }
  throw new Problem(0);
}

/** Whether a job has ended, or waits for the operator of the server. */
export const isEnded = (job) => ["done", "failed", "unpublished"].includes(job.state);

/** Server-sent events: `{kind, data}`. EventSource cannot send a token. */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split(/\r?\n\r?\n/);
    rest = parts.pop();
    for (const lines of parts.map((part) => part.split(/\r?\n/))) {
      const field = (name) =>
        lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1));
      const data = parsed(field("data").join("\n"));
      if (data) yield { kind: (field("event")[0] ?? "").trim(), data };
    }
  }
}
