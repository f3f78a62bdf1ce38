// A reader and a writer of a hive's ledgers, from docs/format.md alone: sections "Lines", "Records",
// "Fold", "Memory" and "Places". It reads the tracked files, so `queen` has to have written there.
//
//   node hive.mjs read DIR KIND                   prints the records, by id
//   node hive.mjs message DIR FROM TO BODY        appends a message, under the lock
//   node hive.mjs release DIR ID                  appends an update that ends an assignment

import { createHash, randomBytes } from "node:crypto";
import { appendFileSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const ALIASES = { agent: "droid", previous_agent: "previous_droid" };
const LAST_REV = 2 ** 53 - 1;
const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

function lines(beads, kind) {
  const archive = join(beads, "archive");
  const number = (name) => Number(name.split(".")[1]);
  const segments = existsSync(archive)
    ? readdirSync(archive).filter((name) => name.startsWith(`queen_${kind}.`))
    : [];
  segments.sort((a, b) => number(a) - number(b));
  const files = segments.map((name) => join(archive, name));
  return [...files, join(beads, `queen_${kind}.jsonl`)]
    .filter(existsSync)
    .flatMap((file) => split(readFileSync(file)));
}

function split(bytes) {
  const found = [];
  for (let from = 0; from < bytes.length; ) {
    let to = bytes.indexOf(10, from);
    to = to < 0 ? bytes.length : to;
    const end = to > from && bytes[to - 1] === 13 ? to - 1 : to;
    if (end > from) found.push(bytes.subarray(from, end));
    from = to + 1;
  }
  return found;
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function depth(value) {
  if (value === null || typeof value !== "object") return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depth));
}

function usable(raw) {
  try {
    const fields = JSON.parse(strict.decode(raw));
    const isObject = fields !== null && typeof fields === "object" && !Array.isArray(fields);
    if (!isObject || raw.length >= 1024 * 1024 || depth(fields) > 128) return null;
    if ("_migration" in fields || typeof fields.id !== "string" || !fields.id) return null;
    return fields;
  } catch {
    return null;
  }
}

function finality(rev, status) {
  if (rev === LAST_REV || typeof status !== "string" || status === "active") return 0;
  return status === "expired" ? 1 : 2;
}

function newest(fields) {
  const stamps = Object.entries(fields).filter(([name]) => name.endsWith("_at"));
  return Math.max(-1, ...stamps.map(([, value]) => Date.parse(value)).filter(Number.isFinite));
}

export function fold(raws) {
  const arrived = new Map();
  for (const raw of raws) {
    const fields = usable(raw);
    if (!fields) continue;
    for (const [theirs, ours] of Object.entries(ALIASES))
      if (theirs in fields && !(ours in fields)) fields[ours] = fields[theirs];
    const seen = arrived.get(fields.id) ?? [];
    arrived.set(fields.id, seen);
    let rev = fields.rev;
    const last = seen.at(-1);
    if (Number.isInteger(rev) && rev >= 1 && rev <= LAST_REV) {
      if (seen.some((each) => raw.equals(each.raw))) continue;
    } else if (last?.raw.equals(raw)) continue;
    else rev = last ? last.rev + 1 : 1;
    const digest = createHash("sha256").update(raw).digest("hex");
    const rank = [rev, finality(rev, fields.status), newest(fields), digest];
    seen.push({ rev, raw, fields, rank });
  }
  const records = {};
  for (const [id, seen] of arrived) records[id] = merge(seen.sort(byRank));
  return records;
}

function byRank(a, b) {
  const at = a.rank.findIndex((value, number) => value !== b.rank[number]);
  return at < 0 ? 0 : a.rank[at] < b.rank[at] ? -1 : 1;
}

function merge(seen) {
  const record = {};
  let before = 0;
  for (const { rev, fields } of seen) {
    const kept = { created_at: record.created_at };
    for (const name of ["read", "deleted"])
      if (rev === before && record[name] === true) kept[name] = true;
    Object.assign(record, fields);
    for (const [name, value] of Object.entries(kept)) if (value) record[name] = value;
    record.rev = before = rev;
  }
  return record;
}

function ulid(nowMs) {
  let time = "";
  for (let left = nowMs, n = 0; n < 10; n++, left = Math.floor(left / 32))
    time = CROCKFORD[left % 32] + time;
  return time + [...randomBytes(16)].map((byte) => CROCKFORD[byte % 32]).join("");
}

// Node has no flock(2): the caller holds the lock, as in `flock STATE/lock node hive.mjs …`.
function append(beads, kind, record) {
  const path = join(beads, `queen_${kind}.jsonl`);
  const ends = !existsSync(path) || [0, 10].includes(readFileSync(path).at(-1) ?? 0);
  appendFileSync(path, `${ends ? "" : "\n"}${JSON.stringify(record)}\n`);
}

const [what, beads, ...rest] = process.argv.slice(2);
const now = new Date();
if (what === "read") {
  console.log(JSON.stringify(fold(lines(beads, rest[0]))));
} else if (what === "message") {
  const [from, to, body] = rest;
  const id = `qm-${ulid(now.getTime())}`;
  append(beads, "messages", { id, created_at: now.toISOString(), from, to, subject: body, body, rev: 1 });
  console.log(id);
} else if (what === "release") {
  const { [rest[0]]: held } = fold(lines(beads, "assignments"));
  const ended = { ...held, status: "released", updated_at: now.toISOString(), rev: held.rev + 1 };
  append(beads, "assignments", ended);
}
