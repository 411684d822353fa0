// The REST calls of spec 01 section 2. The session is an HttpOnly cookie, so no token is ever seen by this code.

const TIMEOUT_MS = 15_000;
const UPLOAD_TIMEOUT_MS = 180_000;

/** The server said no: `detail` is its own sentence (problem+json), `retryAfter` seconds or null. */
export class Problem extends Error {
  constructor(status, detail, retryAfter) {
    super(detail);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** No answer came: the request may have been applied, or not. */
export class Unreachable extends Error {}

/** Return whether trying the very same request again can help. */
export const canHeal = (error) =>
  error instanceof Unreachable || (error instanceof Problem && (error.status === 429 || error.status >= 500));

export const newNonce = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

const room = (cid) => `/v1/conversations/${encodeURIComponent(cid)}`;

export const mediaUrl = (media) => `/v1/media/${encodeURIComponent(media.id)}`;

export const api = {
  requestCode: (account) => call("POST", "/v1/auth/otp/request", { account }),
  logIn: (account, code) => call("POST", "/v1/auth/otp/verify", { account, code }),
  logOut: () => call("POST", "/v1/auth/logout"),
  /** Who is logged in: `{uid, name, kind}`, or null. */
  me: async () => (await call("GET", "/page/session")).user,
  conversations: async () => listOf(await call("GET", "/v1/conversations"), "conversations"),
  members: async (cid) => listOf(await call("GET", `${room(cid)}/members`), "members"),
  page: (cid, after, limit) => call("GET", `${room(cid)}/messages?after=${after}&limit=${limit}`),
  resolve: (cid, text) => call("POST", `${room(cid)}/mentions/resolve`, { text }),
  render: (texts) => call("POST", "/page/render", { texts }),
  post: (cid, input) => call("POST", `${room(cid)}/${input.media_id ? "media" : "text"}`, input),
  upload: (file) =>
    exchange("POST", `/v1/media?name=${encodeURIComponent(file.name)}`, {
      body: file,
      headers: { "Content-Type": file.type || "application/octet-stream" },
      timeoutMs: UPLOAD_TIMEOUT_MS,
    }),
};

function listOf(reply, name) {
  return Array.isArray(reply) ? reply : reply[name];
}

function call(method, path, json) {
  if (json === undefined) return exchange(method, path, {});
  return exchange(method, path, { body: JSON.stringify(json), headers: { "Content-Type": "application/json" } });
}

async function exchange(method, path, { body, headers = {}, timeoutMs = TIMEOUT_MS }) {
  let response;
  let text;
  try {
    response = await fetch(path, {
      method,
      body,
      headers,
      credentials: "same-origin",
      cache: "no-store",
      signal: AbortSignal.timeout(timeoutMs),
    });
    text = await response.text();
  } catch {
    throw new Unreachable("The server cannot be reached.");
  }
  const reply = parsed(text);
  if (response.ok) return reply;
  const retryAfter = Number(response.headers.get("Retry-After")) || null;
  throw new Problem(response.status, sentence(reply, response.status, retryAfter), retryAfter);
}

function parsed(text) {
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return null;
  }
}

function sentence(reply, status, retryAfter) {
  const said = reply?.detail || reply?.title || `The server refused (${status}).`;
  return status === 429 && retryAfter ? `${said} Try again in ${Math.ceil(retryAfter)} s.` : said;
}
