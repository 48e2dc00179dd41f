'use strict';

// ---- what is on the page ----

const user = document.body.dataset.user;
const log = document.querySelector('#log');
const count = document.querySelector('#count');
const badge = document.querySelector('#status');
const state = document.querySelector('#state');
const countdown = document.querySelector('#countdown');
const retry = document.querySelector('#retry');
const compose = document.querySelector('#compose');
const text = document.querySelector('#text');
const send = document.querySelector('#send');
const toasts = document.querySelector('#toasts');

// Everything that comes from others is set as text, never as markup.
function element(tag, className, content = '') {
  const node = document.createElement(tag);
  node.className = className;
  node.textContent = content;
  return node;
}

function initials(name) {
  return name.split(/[\s_-]+/).filter(Boolean).slice(0, 2).map((word) => [...word][0]).join('').toUpperCase();
}

// The same name has the same colour on every screen.
function hue(name) {
  let hash = 0;
  for (const character of name) hash = (hash * 31 + character.codePointAt(0)) % 360;
  return hash;
}

function clock(at) {
  const time = element('time', '', new Date(at).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' }));
  time.dateTime = new Date(at).toISOString();
  return time;
}

function append(item) {
  const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 80;
  log.append(item);
  while (log.children.length > 500) log.firstChild.remove();
  if (atEnd) log.scrollTop = log.scrollHeight;
}

function showMessage({ from, text, at }) {
  const own = from === user;
  const item = element('li', own ? 'message own' : 'message');
  const avatar = element('span', 'avatar', initials(from));
  avatar.style.setProperty('--hue', hue(from));
  avatar.ariaHidden = 'true';
  const bubble = element('div', 'bubble');
  const head = element('div', 'head');
  head.append(element('span', 'from', own ? 'You' : from), clock(at));
  bubble.append(head, element('p', 'text', text));
  item.append(avatar, bubble);
  append(item);
}

function showNotice(words) {
  append(element('li', 'notice', words));
}

function showToast(words, kind) {
  const toast = element('div', `toast ${kind}`);
  const close = element('button', 'quiet', '×');
  close.type = 'button';
  close.ariaLabel = 'Dismiss';
  close.onclick = () => toast.remove();
  toast.append(element('p', 'text', words), close);
  toasts.append(toast);
  setTimeout(() => toast.remove(), 10000);
}

const show = {
  welcome: () => showNotice(`You are in the lobby as ${user}.`),
  join: ({ name }) => showNotice(`${name} came in.`),
  leave: ({ name }) => showNotice(`${name} left.`),
  count: () => {},
  message: showMessage,
  notify: ({ text }) => showToast(text, 'notify'),
  error: ({ text }) => showToast(text, 'error'),
};

// ---- the socket, and the next one when it breaks ----

let socket;
let attempts = 0; // failed ones since the last that worked
let timer; // of the countdown

function setState(name) {
  if (badge.dataset.state !== name) state.textContent = name; // is read aloud
  badge.dataset.state = name;
  countdown.textContent = '';
  send.disabled = name !== 'online';
  retry.hidden = name !== 'offline';
}

function connect() {
  clearTimeout(timer);
  if (socket && socket.readyState <= WebSocket.OPEN) return;
  setState('connecting');
  const url = new URL('websocket.php', location.href);
  url.protocol = url.protocol.replace('http', 'ws');
  socket = new WebSocket(url);
  let opened = false;
  socket.onopen = () => {
    opened = true;
    attempts = 0;
    setState('online');
  };
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.count !== undefined) count.textContent = `${message.count} online`;
    show[message.type]?.(message);
  };
  socket.onclose = async ({ code }) => {
    count.textContent = '';
    if (code === 4001 || (!opened && await loggedOut())) {
      location.reload(); // to the log-in form
      return;
    }
    waitAndConnect();
  };
}

async function loggedOut() {
  try {
    return (await fetch('me.php')).status === 401;
  } catch {
    return false; // the server is away, which is not the same
  }
}

// Every failure doubles the wait, up to half a minute. The random part keeps a
// thousand tabs from coming back in the same instant after a restart.
function waitAndConnect() {
  const longest = Math.min(30000, 500 * 2 ** attempts);
  attempts += 1;
  const until = Date.now() + longest * (0.5 + Math.random() / 2);
  const tick = () => {
    const left = until - Date.now();
    if (left <= 0) return connect();
    setState('offline');
    countdown.textContent = `next try in ${Math.ceil(left / 1000)} s`;
    timer = setTimeout(tick, Math.min(left, 1000));
  };
  tick();
}

// ---- what the user does ----

compose.addEventListener('submit', (event) => {
  event.preventDefault();
  const line = text.value.trim();
  if (line === '' || socket.readyState !== WebSocket.OPEN) return;
  socket.send(JSON.stringify({ text: line }));
  text.value = '';
  text.focus();
});

text.addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    compose.requestSubmit();
  }
});

retry.addEventListener('click', connect);
window.addEventListener('online', connect);

connect();
