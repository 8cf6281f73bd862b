'use strict';

// Converts the output of osls to a plain CloudFormation template: the code comes from a bucket that
// two parameters name, under keys that hold the hash of the code, so that a stack changes exactly
// if the code or the template does. Equal sources give equal bytes.
// usage: node template.js COMPILED DIST ARCH TEMPLATE     DIST/ARCH has the functions' zips; it copies them to the folder of the template.

const crypto = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');

const isNoValue = (value) => value !== null && typeof value === 'object' && value.Ref === 'AWS::NoValue';

// pruned removes the properties whose value is AWS::NoValue, as CloudFormation does.
const pruned = (value) => {
  if (Array.isArray(value)) return value.filter((v) => !isNoValue(v)).map(pruned);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, v]) => !isNoValue(v))
      .map(([k, v]) => [k, k === 'Fn::If' ? v : pruned(v)]),
  );
};

// names returns the logical ids that a value refers to, except for those within Fn::Sub.
const names = (value) => {
  if (value === null || typeof value !== 'object') return [];
  const own = [value.Ref, value['Fn::GetAtt']?.[0]].filter((name) => typeof name === 'string');
  return [...own, ...Object.values(value).flatMap(names)];
};

// withoutNeedless removes dependencies that references imply.
const withoutNeedless = (resource) => {
  const { DependsOn, ...rest } = resource;
  const referred = new Set(names(resource.Properties));
  const needed = [DependsOn ?? []].flat().filter((name) => !referred.has(name));
  return needed.length === 0 ? rest : { ...rest, DependsOn: needed };
};

// code copies a zip to the folder of the template, named by its hash, and returns the function's
// reference to it.
const code = (zip, directory) => {
  const bytes = fs.readFileSync(zip);
  const hash = crypto.createHash('sha256').update(bytes).digest('hex').slice(0, 16);
  const name = `${path.basename(zip, '.zip')}-${hash}.zip`;
  const beside = path.join(directory, name);
  if (!fs.existsSync(beside)) fs.writeFileSync(beside, bytes);
  return { S3Bucket: { Ref: 'CodeBucket' }, S3Key: { 'Fn::Sub': `\${CodePrefix}${name}` } };
};

// The types of resources that have tags, as a list or as a map.
const LISTED = /^AWS::(CloudWatch::Alarm|CodeDeploy::\w+|Events::Rule|IAM::Role|Lambda::(EventSourceMapping|Function)|Logs::LogGroup|S3::Bucket|SQS::Queue)$/;
const MAPPED = /^AWS::ApiGatewayV2::(Api|DomainName|Stage)$/;

// tag gives a resource the tags of the stack. osls gives them to functions only, and deploys the
// others as tags of the stack, which CloudFormation passes on.
const tag = ({ Type, Properties }, tags) => {
  if (LISTED.test(Type)) Properties.Tags = tags;
  if (Type === 'AWS::Budgets::Budget') Properties.ResourceTags = tags;
  if (MAPPED.test(Type)) Properties.Tags = Object.fromEntries(tags.map(({ Key, Value }) => [Key, Value]));
};

const main = (compiled, dist, arch, template) => {
  const directory = path.dirname(template);
  for (const old of fs.readdirSync(directory)) if (old.endsWith('.zip')) fs.rmSync(path.join(directory, old));
  const from = pruned(JSON.parse(fs.readFileSync(compiled, 'utf8')));

  const tags = from.Resources.PlanLambdaFunction.Properties.Tags;
  const resources = {};
  for (const [id, resource] of Object.entries(from.Resources)) {
    if (id.startsWith('ServerlessDeploymentBucket')) continue;
    if (resource.Type === 'AWS::Lambda::Function') {
      const zip = path.join(dist, arch, path.basename(resource.Properties.Code.S3Key));
      resource.Properties.Code = code(zip, directory);
    }
    tag(resource, tags);
    resources[id] = withoutNeedless(resource);
  }
  const { ServerlessDeploymentBucketName, ...outputs } = from.Outputs;
  // A stack can export a name only once; no other stack needs these.
  for (const output of Object.values(outputs)) delete output.Export;
  const plain = {
    AWSTemplateFormatVersion: from.AWSTemplateFormatVersion,
    Description: 'Promlake: Prometheus metrics in a bucket, asked with PromQL.',
    Parameters: {
      CodeBucket: { Type: 'String', Description: "The bucket with the functions' zips, in the stack's region." },
      CodePrefix: { Type: 'String', Default: 'promlake/', Description: 'What precedes the names of the zips in their keys.' },
      ...from.Parameters,
    },
    Conditions: from.Conditions,
    Resources: resources,
    Outputs: outputs,
  };
  fs.writeFileSync(template, `${JSON.stringify(plain, null, 1)}\n`);
};

main(...process.argv.slice(2));
