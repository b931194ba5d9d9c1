// Debug files that are uploaded, and the jobs that build indexes of them.

import { followJob, isEnded, upload } from "./api.js";
import { announce, byId, count, el, size, spelledId } from "./dom.js";

const STATES = {
  queued: "Waiting for its turn",
  running: "Building the index",
  done: "Done",
  failed: "Failed",
  unpublished: "Built, but no store accepts the index. It will be published when an operator resumes the job",
};

/** Uploads files one after the other. `onDone` is called after each whose index is there. */
export async function uploadAll(files, onDone) {
  const items = files.map((entry) => ({ ...entry, view: itemView(entry) }));
  byId("uploads").hidden = false;
  byId("upload-list").prepend(...items.map(({ view }) => view.element));
  announce(`Uploading ${count(items.length, "file")}`);
  for (const { file, name, view } of items) {
    try {
      const job = await uploadOne(file, name, view);
      if ((job.images ?? []).length > 0) await onDone(job);
    } catch (error) {
      view.fail(error.message, error.detail);
    }
  }
}

async function uploadOne(file, name, view) {
  const accepted = await upload(file, name, view.sent);
  view.show(accepted);
  const job = isEnded(accepted) ? accepted : await followJob(accepted.id, view.show);
  view.show(job);
  return job;
}

function itemView({ name, file }) {
  const state = el("span", { class: "state" }, "Waiting");
  const bar = el("progress", { max: "1", value: "0", "aria-label": `Upload of ${name}` });
  const details = el("ul", { class: "plain results" });
  const element = el(
    "li",
    { class: "upload" },
    el(
      "div",
      { class: "image-head" },
      el("strong", {}, name),
      el("span", { class: "muted" }, size(file.size)),
      state,
    ),
    bar,
    details,
  );
  const say = (text, kind = "") => {
    state.textContent = text;
    state.className = `state ${kind}`;
  };
  return {
    element,
    sent(part) {
      bar.value = part;
      say(part < 1 ? `Uploading, ${Math.floor(part * 100)} %` : "Uploaded");
    },
    show(job) {
      const ended = isEnded(job);
      bar.hidden = ended;
      const { done = 0, total = 0 } = job.progress ?? {};
      bar.setAttribute("aria-label", `Build of ${name}`);
      // Without a value, the bar says that something goes on.
      if (total > 0) bar.value = done / total;
      else bar.removeAttribute("value");
      say(
        STATES[job.state] ?? job.state,
        job.state === "done" ? "good" : ended ? "bad" : "",
      );
      if (!ended) return;
      details.replaceChildren(
        ...(job.images ?? []).map(imageResult),
        ...(job.failures ?? []).map(failureResult),
        ...(job.warnings ?? []).map((warning) => el("li", { class: "muted" }, warning)),
      );
      announce(`${name}: ${STATES[job.state] ?? job.state}`);
    },
    fail(message, detail) {
      bar.hidden = true;
      say("Failed", "bad");
      details.replaceChildren(el("li", { class: "bad" }, [message, detail].filter(Boolean).join(": ")));
      announce(`${name}: failed. ${message}`);
    },
  };
}

function imageResult({ id, name, arch, outcome }) {
  return el(
    "li",
    {},
    el("a", { href: `#image=${encodeURIComponent(id)}` }, name ?? id),
    el("span", { class: "badge" }, arch ?? ""),
    el("code", {}, spelledId(id)),
    outcome && el("span", { class: "muted" }, outcome),
  );
}

const failureResult = (failure) => el("li", { class: "bad" }, failure.message ?? String(failure));
