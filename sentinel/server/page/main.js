// The page: wires the parts together and holds who is logged in and which room is open.

import { Problem, api } from "./api.js";
import { Composer } from "./composer.js";
import { byId, say } from "./dom.js";
import { LogView } from "./log.js";
import { LoginView } from "./login.js";
import { Renderer } from "./markdown.js";
import { MembersView, personasFirst } from "./members.js";
import { Outbox } from "./outbox.js";
import { showPending } from "./pending.js";
import { RoomsView } from "./rooms.js";
import { Line } from "./socket.js";
import { Timeline } from "./timeline.js";

const CHECK_EVERY_MS = 30_000; // a look at the rooms beside the socket, in case that one is deaf
const PULL_AGAIN_MS = 2_000;
const TYPING_AGAIN_MS = 3_000;
const TYPING_ENDS_MS = 5_000;

const state = { me: null, cid: null, timeline: null, isUp: false, pullTimer: null };
const typing = { sentAt: 0, timer: null };

const rooms = new RoomsView();
const members = new MembersView();
const login = new LoginView({ onLoggedIn: () => start() });
const outbox = new Outbox({
  onChange: () => showPending(outbox, state.cid),
  onPosted: (message) => arrived(message),
});
const composer = new Composer({
  onSend: (cid, input, file) => outbox.add(cid, input, file),
  onTyping: (isOn) => tellTyping(isOn),
});
const log = new LogView({
  renderer: new Renderer(),
  nameOf: members.nameOf,
  context: { find: (id) => state.timeline?.byId.get(id), onReply: (message) => composer.replyTo(message) },
});
const line = new Line({
  onUp: () => reconnected(),
  onDown: (waitMs) => disconnected(waitMs),
  onFrame: (frame) => received(frame),
  onEnd: (why) => ended(why),
});

async function start() {
  try {
    state.me = await api.me();
  } catch (error) {
    login.show(`${error.message} Reload the page to try again.`);
    return;
  }
  if (!state.me) {
    login.show();
    return;
  }
  login.hide();
  byId("app").hidden = false;
  byId("my-name").textContent = state.me.name;
  rooms.begin(state.me.uid);
  line.open();
  await guarded(refreshRooms);
  await openFromAddress();
}

function ended(why) {
  if (why === "unauthorized") stop("Your log-in has ended. Log in again to go on.");
  else banner("This account was opened elsewhere, so this page has stopped. Reload it to take over.");
}

/** Leave everything of this session behind and show the log-in form. */
function stop(message) {
  line.close();
  state.me = null;
  state.isUp = false;
  closeRoom();
  outbox.entries = [];
  composer.leave();
  rooms.begin("");
  rooms.set([]);
  banner("");
  byId("app").hidden = true;
  login.show(message);
}

/** Run `work`; a 401 ends the session, anything else is told in the banner of a page that is otherwise up. */
async function guarded(work) {
  try {
    await work();
    return true;
  } catch (error) {
    if (error instanceof Problem && error.status === 401 && state.me) ended("unauthorized");
    else if (state.me && state.isUp) banner(error.message);
    return false;
  }
}

// --- rooms ---------------------------------------------------------------------------------------------------------

async function refreshRooms() {
  rooms.set(await api.conversations());
}

async function openFromAddress() {
  const wanted = new URLSearchParams(location.hash.slice(1)).get("cid");
  const cid = wanted ?? (matchMedia("(min-width: 721px)").matches ? rooms.rooms[0]?.cid : null);
  if (wanted && !rooms.find(wanted)) await guarded(refreshRooms);
  if (cid && rooms.find(cid)) await openRoom(cid);
  else {
    closeRoom();
    byId("room-title").textContent = wanted ? "There is no such room for this account" : "Choose a room";
    showRooms(true);
  }
}

async function openRoom(cid) {
  showRooms(false);
  if (cid === state.cid) return;
  closeRoom();
  state.cid = cid;
  state.timeline = new Timeline(cid, (messages) => appended(cid, messages));
  byId("room-title").textContent = rooms.find(cid).title;
  rooms.open(cid);
  composer.enter(cid);
  showPending(outbox, cid);
  if (matchMedia("(hover: hover)").matches) composer.focus(); // on a touch screen that would raise the keyboard
  await Promise.all([guarded(refreshMembers), pull()]);
}

function closeRoom() {
  clearTimeout(state.pullTimer);
  tellTyping(false);
  state.cid = null;
  state.timeline = null;
  log.clear();
  members.clear();
  byId("empty").hidden = true;
  byId("composer").hidden = true;
  rooms.open(null);
}

async function refreshMembers() {
  const cid = state.cid;
  if (cid === null) return;
  const list = await api.members(cid);
  if (cid !== state.cid) return;
  members.set(list);
  composer.setMembers(personasFirst(list.filter(({ uid }) => uid !== state.me.uid)));
}

function showRooms(isOpen) {
  byId("app").classList.toggle("rooms-shown", isOpen);
  byId("rooms-open").setAttribute("aria-expanded", String(isOpen));
}

// --- messages ------------------------------------------------------------------------------------------------------

/** Pull what is newer than the last message taken; tries again by itself while the line is up. */
async function pull() {
  const { timeline } = state;
  if (!timeline) return;
  clearTimeout(state.pullTimer);
  log.isBusy = true;
  const isDone = await guarded(() => timeline.pull());
  if (timeline !== state.timeline) return;
  log.isBusy = false;
  byId("empty").hidden = !isDone || timeline.messages.length > 0;
  if (isDone && state.isUp) banner("");
  if (!isDone && state.isUp) state.pullTimer = setTimeout(pull, PULL_AGAIN_MS);
}

async function arrived(message) {
  rooms.heard(message.cid, message.seq);
  if (message.nonce && message.sender.uid === state.me?.uid) outbox.acknowledge(message.nonce);
  if (message.cid !== state.cid) return;
  members.typing(message.sender.uid, false);
  const { timeline } = state;
  if (!(await guarded(() => timeline.offer(message)))) pull();
}

function appended(cid, messages) {
  if (cid !== state.cid) return;
  for (const { nonce, sender } of messages) if (nonce && sender.uid === state.me.uid) outbox.acknowledge(nonce);
  byId("empty").hidden = true;
  log.append(messages, state.me);
  rooms.heard(cid, state.timeline.lastSeq);
  markRead();
}

function markRead() {
  if (state.timeline && !document.hidden) rooms.read(state.cid, state.timeline.lastSeq);
}

// --- the live line -------------------------------------------------------------------------------------------------

async function reconnected() {
  state.isUp = true;
  banner("");
  await Promise.all([guarded(refreshRooms), guarded(refreshMembers), pull()]);
  outbox.retryUnreached();
}

function disconnected(waitMs) {
  state.isUp = false;
  banner(`Disconnected. What you see may be out of date; trying again in ${Math.ceil(waitMs / 1000)} s.`, true);
}

const FRAMES = {
  "message.new": ({ message }) => rooms.find(message.cid) ? arrived(message) : guarded(refreshRooms),
  typing: ({ cid, uid, on }) => cid === state.cid && uid !== state.me.uid && members.typing(uid, on),
  presence: ({ uid, state: presence, detail }) => members.presence(uid, presence, detail),
  "member.joined": ({ cid }) => membersChanged(cid),
  "member.left": ({ cid }) => membersChanged(cid),
};

function received(frame) {
  if (state.me) FRAMES[frame.type]?.(frame);
}

async function membersChanged(cid) {
  await guarded(refreshRooms);
  if (cid === state.cid) await (rooms.find(cid) ? guarded(refreshMembers) : openFromAddress());
}

/** Compare with the server now and then: whatever the socket did not bring is pulled, and the socket begun anew. */
async function check() {
  if (!state.me || !state.isUp || document.hidden || !(await guarded(refreshRooms))) return;
  const newest = rooms.find(state.cid)?.last_seq ?? 0;
  if (!state.timeline || newest <= state.timeline.lastSeq) return;
  line.restart();
}

function tellTyping(isOn) {
  clearTimeout(typing.timer);
  if (isOn) typing.timer = setTimeout(() => tellTyping(false), TYPING_ENDS_MS);
  const isDue = isOn ? performance.now() - typing.sentAt > TYPING_AGAIN_MS : typing.sentAt > 0;
  if (!isDue || state.cid === null) return;
  typing.sentAt = isOn ? performance.now() : 0;
  line.send({ type: "typing", cid: state.cid, on: isOn });
}

function banner(text, mayReconnect = false) {
  say(byId("banner-text"), text);
  byId("banner").hidden = !text;
  byId("reconnect").hidden = !mayReconnect;
}

async function logOut() {
  await guarded(api.logOut);
  stop("You are logged out.");
}

byId("logout").addEventListener("click", logOut);
byId("reconnect").addEventListener("click", () => line.retryNow());
byId("rooms-open").addEventListener("click", () => {
  showRooms(true);
  (document.querySelector("#room-list [aria-current]") ?? document.querySelector("#room-list a"))?.focus();
});
byId("room-list").addEventListener("click", ({ target }) => {
  if (target.closest("[aria-current]")) showRooms(false); // its address is this one already, so nothing else tells
});
byId("rooms-close").addEventListener("click", () => {
  showRooms(false);
  byId("rooms-open").focus();
});
document.addEventListener("visibilitychange", markRead);
addEventListener("hashchange", () => state.me && openFromAddress());
addEventListener("beforeunload", (event) => outbox.entries.length > 0 && event.preventDefault());
setInterval(check, CHECK_EVERY_MS);
start();
