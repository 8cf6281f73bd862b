'use strict';

// Checks the name of a stage and its parameters before the build, and reports a mistake in one
// line.
// usage: node check.js STAGE ARCH [NAME=VALUE...]     the parameters of serverless.yml

const fs = require('node:fs');
const path = require('node:path');
const yaml = require('js-yaml');
const settings = require('./settings.js');

const STAGE = /^[a-z][a-z0-9-]{0,19}$/;

// pair splits NAME=VALUE.
const pair = (given) => {
  const at = given.indexOf('=');
  if (at < 1) throw new Error(`parameter ${given}: want NAME=VALUE`);
  return [given.slice(0, at), given.slice(at + 1)];
};

// values returns the text of every parameter of a stage, where given are those of the command line.
const values = async (stage, arch, given) => {
  if (!STAGE.test(stage)) throw new Error(`stage "${stage}": want a lower-case name of letters, digits and -, 20 at most`);
  if ('architecture' in given) throw new Error('parameter architecture: set ARCH= instead, which also selects the build');

  const { params } = yaml.load(fs.readFileSync(path.join(__dirname, 'serverless.yml'), 'utf8'));
  const all = { ...params.default, ...params[stage], ...given, architecture: arch, 'sls:stage': stage };
  const resolveVariable = async (name) => String(all[name.replace(/^param:/, '')]).replaceAll('${sls:stage}', stage);
  const parameters = Object.entries(given).map(([name, value]) => `${name}=${value}`);
  return (await settings({ options: { param: parameters }, resolveVariable })).parameters.values;
};

module.exports = { pair, values };

if (require.main === module) {
  const [stage, arch, ...parameters] = process.argv.slice(2);
  (async () => values(stage, arch, Object.fromEntries(parameters.map(pair))))().catch((e) => {
    console.error(`package: ${e.message}`);
    process.exitCode = 2;
  });
}
