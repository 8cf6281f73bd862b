'use strict';

// Compares the parameters of a deployment with those of the stack that it updates.
// usage: node changes.js [--yes] [--allow-deletion] STAGE REGION ARCH [NAME=VALUE...]
//
// It writes the parameters to dist/STAGE/parameters, each followed by a zero byte: those of the
// stack, replaced by those given. An empty value gives a parameter back to its default.
//
// The template of the stack keeps them in its metadata, which GetTemplate returns. So they cost
// nothing, have the length that they need (an output or a tag is too short for relabeling), are
// removed with the stack, and are always those of the last deployment that succeeded:
// CloudFormation restores the former template when it rolls back. CloudFormation does not update
// metadata alone, but every deployment of osls also changes the keys of the functions' code.

const fs = require('node:fs');
const path = require('node:path');
const readline = require('node:readline/promises');
const { pair, values } = require('./check.js');
const { shown } = require('./settings.js');
const { client, template } = require('./stack.js');

const SECONDS = { y: 365 * 86400, w: 7 * 86400, d: 86400, h: 3600, m: 60, s: 1 };

// seconds returns the length of a retention period; 0 keeps samples for ever.
const seconds = (period) => [...period.matchAll(/(\d+)([ywdhms])/g)].reduce((sum, [, n, unit]) => sum + n * SECONDS[unit], 0) || Infinity;

// deployed returns the parameters of a template: { given, values, complete }, or nothing if it has
// none because its first deployment failed. Of a template without metadata, which older versions
// deployed, it finds only what could delete something.
const deployed = ({ Metadata, Resources }) => {
  if (!Resources.Bucket) return undefined;
  if (Metadata?.Promlake) return { ...Metadata.Promlake, complete: true };
  const of = Resources.PlanLambdaFunction.Properties.Environment.Variables;
  const text = (value) => (typeof value === 'string' ? value : ''); // else AWS::NoValue
  const found = {
    rules: Resources.RulesLambdaFunction ? 'on' : 'off',
    retention: text(of.PROMLAKE_COMPACTOR_BLOCKS_RETENTION_PERIOD),
    'tenant-retention': text(of.PROMLAKE_COMPACTOR_TENANT_RETENTION),
  };
  return { given: found, values: found, complete: false };
};

// merged returns the parameters to deploy.
const merged = (kept, given) => Object.fromEntries(Object.entries({ ...kept, ...given }).filter(([, value]) => value !== ''));

// changed returns the names of the parameters whose values differ. Parameters that only one version
// has count only if they are given.
const changed = (from, to, given) => Object.keys(to).filter((name) => (name in from ? from[name] !== to[name] : name in given));

// deletions returns what a deployment would delete, a text each.
const deletions = (from, to) => {
  const lost = [];
  const tenants = (all) => new Map(all['tenant-retention'].split(',').filter(Boolean).map(pair));
  const [before, after] = [tenants(from), tenants(to)];
  const shorter = (whose, old, now) => {
    if (seconds(now) < seconds(old)) lost.push(`${whose} are deleted after ${now}, ${old === '0' ? 'and were kept for ever' : `not ${old}`}`);
  };
  shorter('samples', from.retention, to.retention);
  for (const tenant of new Set([...before.keys(), ...after.keys()])) {
    shorter(`samples of tenant ${tenant}`, before.get(tenant) ?? from.retention, after.get(tenant) ?? to.retention);
  }
  const left = (name, value) => from[name] === value && to[name] !== value;
  if (left('rules', 'on')) lost.push(`rules=${to.rules} deletes the function and the queue of rules`);
  const replica = from['replica-bucket'];
  if (replica && to['replica-bucket'] !== replica) lost.push(`replica-bucket=${to['replica-bucket']} ends the replica in ${replica}`);
  if (left('versioning', 'on')) lost.push(`versioning=${to.versioning} keeps no versions of objects that are deleted from now on`);
  const key = from['kms-key'];
  if (key && to['kms-key'] !== key) lost.push(`kms-key=${to['kms-key']} deletes the right to use ${key}, which encrypts objects and messages`);
  if (from.domain && to.domain !== from.domain) lost.push(`domain=${to.domain} deletes ${from.domain}: senders and readers of this address fail`);
  if ((from.canary === '') !== (to.canary === '')) lost.push(`canary=${to.canary} gives the functions' URLs new addresses: senders and readers of the former ones fail`);
  if (from.mode !== 'grouped' && to.mode === 'grouped') lost.push("mode=grouped deletes the ingest function's URL, whose address never returns");
  const days = 'log-retention-days';
  if (Number(to[days]) < Number(from[days])) lost.push(`logs are deleted after ${to[days]} days, not ${from[days]}`);
  return lost;
};

const line = (name, from, to) => `  ${name.padEnd(28)} ${shown(name, from ?? '')} -> ${shown(name, to)}`;

// agreed asks on the terminal.
const agreed = async () => {
  const terminal = readline.createInterface({ input: process.stdin, output: process.stdout });
  const answer = await terminal.question('Deploy this? [y/N] ');
  terminal.close();
  return /^y(es)?$/i.test(answer.trim());
};

// plan returns { given, notes, lost, ask }: the parameters to deploy, lines to print, what would be
// deleted, and whether someone must agree. old is what deployed returned.
const plan = async (stage, arch, old, given) => {
  const all = merged(old?.given ?? {}, given);
  const now = await values(stage, arch, all);
  for (const name of Object.keys(given)) {
    if (!(name in now) && !(name in (old?.given ?? {}))) await values(stage, arch, { ...all, [name]: '' }); // not known
  }
  if (!old) return { given: all, notes: [], lost: [], ask: false };
  const names = changed(old.values, now, all);
  const notes = names.map((name) => line(name, old.values[name], now[name]));
  if (!old.complete) notes.unshift('  the stack is of a version that kept no parameters: PARAMS must have all that it was deployed with');
  // A stack that kept no parameter canary has none.
  return { given: all, notes, lost: deletions({ ...now, canary: '', ...old.values }, now), ask: notes.length > 0 };
};

const main = async (args) => {
  const [stage, region, arch, ...parameters] = args.filter((arg) => !arg.startsWith('--'));
  const given = Object.fromEntries(parameters.map(pair));
  const found = await template(client(region), `promlake-${stage}`);
  const { given: all, notes, lost, ask } = await plan(stage, arch, found && deployed(found), given);

  const kept = Object.entries(all).map(([name, value]) => `${name}=${shown(name, value)}`);
  console.log(`deploy: parameters of promlake-${stage}: ${kept.join(' ') || 'the defaults'}`);
  if (ask) console.log(['deploy: changes:', ...notes].join('\n'));
  if (lost.length > 0 && !args.includes('--allow-deletion')) {
    throw new Error(`refused, because it deletes:\n  ${lost.join('\n  ')}\nTo deploy it nevertheless: make deploy … ALLOW_DELETION=1`);
  }
  if (ask && !args.includes('--yes')) {
    if (!process.stdin.isTTY) throw new Error('refused, because parameters change and there is no terminal to ask. To deploy without a question: make deploy … YES=1');
    if (!(await agreed())) throw new Error('nothing was deployed');
  }
  const directory = path.join(__dirname, '../dist', stage);
  fs.mkdirSync(directory, { recursive: true });
  fs.writeFileSync(path.join(directory, 'parameters'), Object.entries(all).map(([name, value]) => `${name}=${value}\0`).join(''));
};

module.exports = { deployed, plan };

if (require.main === module) {
  main(process.argv.slice(2)).catch((e) => {
    console.error(`deploy: ${e.message}`);
    process.exitCode = 1;
  });
}
