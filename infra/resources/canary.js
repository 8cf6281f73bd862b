'use strict';

// The parameter canary, as a plugin of osls: each deployment publishes a version of each function,
// all triggers invoke an alias, and CodeDeploy moves it to the new version. Without the parameter
// it changes nothing. docs/upgrading-aws.md describes it to users, rollback.js is the way back.

const crypto = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');

const ALIAS = 'live';

// The alarms that stop the deployment of a function. One that is not here is moved at once: the
// next minute repeats what the function of the replica failed to do.
const STOP = {
  ingest: ['ApiFailuresAlarm', 'IngestUrlFailuresAlarm', 'WriteAgeAlarm'],
  flush: ['FlushErrorsAlarm', 'WriteAgeAlarm'],
  plan: ['PlanErrorsAlarm'],
  compact: ['CompactErrorsAlarm'],
  query: ['ApiFailuresAlarm', 'QueryUrlFailuresAlarm'],
  rules: ['RulesErrorsAlarm', 'RulesFailuresAlarm'],
};

const title = (name) => name[0].toUpperCase() + name.slice(1);
const sha256 = (data) => crypto.createHash('sha256').update(data).digest('hex');

// formats returns the versions of what one version of the functions leaves to another one: objects
// and messages, of the table in schemas/README.md. Pieces of queries stay within a version.
const formats = () => {
  const rows = fs.readFileSync(path.join(__dirname, '../../schemas/README.md'), 'utf8').matchAll(/^\| \[([a-z-]+)\.md\].* \| (?:[\d, to]*\D)?(\d+) \| [^|]*\|$/gm);
  return [...rows].filter(([, name]) => name !== 'piece').map(([, name, version]) => `${name} ${version}`).join(', ');
};

// quick is a copy of an alarm that rings after two minutes instead of fifteen, for CodeDeploy only.
const quick = ({ Type, Properties }) => {
  const AlarmDescription = `Stops the deployment of a new version. ${Properties.AlarmDescription}`;
  return { Type, Properties: { ...Properties, AlarmDescription, Period: 60, EvaluationPeriods: 2, AlarmActions: [], OKActions: [] } };
};

// What CodeDeploy may do: read alarms, and move the aliases of functions.
const read = { Effect: 'Allow', Action: ['cloudwatch:DescribeAlarms'], Resource: ['*'] };
const move = (functions) => ({
  Effect: 'Allow',
  Action: ['lambda:GetAlias', 'lambda:UpdateAlias', 'lambda:GetProvisionedConcurrencyConfig'],
  Resource: functions.flatMap((id) => [{ 'Fn::GetAtt': [id, 'Arn'] }, { 'Fn::Sub': `\${${id}.Arn}:*` }]),
});
const role = (boundary, functions) => ({
  Type: 'AWS::IAM::Role',
  Properties: {
    PermissionsBoundary: boundary,
    AssumeRolePolicyDocument: {
      Version: '2012-10-17',
      Statement: [{ Effect: 'Allow', Principal: { Service: 'codedeploy.amazonaws.com' }, Action: 'sts:AssumeRole' }],
    },
    Policies: [{ PolicyName: 'canary', PolicyDocument: { Version: '2012-10-17', Statement: [read, move(functions)] } }],
  },
});

// group is how CodeDeploy moves the alias of a function, and which alarms move it back.
const group = (canary, alarms) => ({
  Type: 'AWS::CodeDeploy::DeploymentGroup',
  Properties: {
    ApplicationName: { Ref: 'CanaryApplication' },
    ServiceRoleArn: { 'Fn::GetAtt': ['CanaryRole', 'Arn'] },
    DeploymentConfigName: `CodeDeployDefault.Lambda${canary}`,
    DeploymentStyle: { DeploymentType: 'BLUE_GREEN', DeploymentOption: 'WITH_TRAFFIC_CONTROL' },
    AutoRollbackConfiguration: { Enabled: true, Events: ['DEPLOYMENT_FAILURE', 'DEPLOYMENT_STOP_ON_ALARM', 'DEPLOYMENT_STOP_ON_REQUEST'] },
    AlarmConfiguration: { Enabled: true, Alarms: alarms.map((Ref) => ({ Name: { Ref } })) },
  },
});

// extend adds versions and aliases to a template, where zips are the bytes of the functions' code.
// The description of a version names its deployment: a hash of the code and the settings of all
// functions, so that all of them get a version if one changes, and go back together.
const extend = (template, zips, { canary, permissionsBoundary, noValue, stackTags: { stage } }) => {
  const names = Object.keys(zips);
  const id = (name) => `${title(name)}LambdaFunction`;
  const settings = names.map((name) => {
    const { Code, Tags, ReservedConcurrentExecutions, ...rest } = template.Resources[id(name)].Properties;
    return [name, sha256(zips[name]), rest];
  });
  const deployment = sha256(JSON.stringify([settings, formats()])).slice(0, 16);

  // rollback.js sets this parameter: the versions that the aliases point to, not the new ones.
  const none = ','.repeat(names.length - 1);
  const Description = `The versions that ${names.join(', ')} run, separated by commas. Only commas: those of this template.`;
  template.Parameters = { ...template.Parameters, Versions: { Type: 'String', Default: none, Description } };
  template.Conditions = { ...template.Conditions, RolledBack: { 'Fn::Not': [{ 'Fn::Equals': [{ Ref: 'Versions' }, none] }] } };

  const add = {};
  const shifted = canary === 'AllAtOnce' ? [] : names.filter((name) => name in STOP);
  for (const [i, name] of names.entries()) {
    template.Resources[id(name)].Properties.Description = `deployment ${deployment}; ${formats()}`;
    const version = `${title(name)}Version${deployment}`;
    // The former versions stay for the way back, but not one whose deployment failed.
    add[version] = { Type: 'AWS::Lambda::Version', DeletionPolicy: 'RetainExceptOnCreate', Properties: { FunctionName: { Ref: id(name) } } };
    const former = { 'Fn::Select': [i, { 'Fn::Split': [',', { Ref: 'Versions' }] }] };
    const FunctionVersion = { 'Fn::If': ['RolledBack', former, { 'Fn::GetAtt': [version, 'Version'] }] };
    add[`${title(name)}Alias`] = { Type: 'AWS::Lambda::Alias', Properties: { FunctionName: { Ref: id(name) }, FunctionVersion, Name: ALIAS } };
    if (!shifted.includes(name)) continue;
    const update = { ApplicationName: { Ref: 'CanaryApplication' }, DeploymentGroupName: { Ref: `${title(name)}Canary` } };
    add[`${title(name)}Alias`].UpdatePolicy = { CodeDeployLambdaAliasUpdate: { 'Fn::If': ['RolledBack', noValue, update] } };
    const alarms = STOP[name].filter((alarm) => alarm in template.Resources);
    for (const alarm of alarms) add[`Canary${alarm}`] = quick(template.Resources[alarm]);
    add[`${title(name)}Canary`] = group(canary, alarms.map((alarm) => `Canary${alarm}`));
  }
  if (shifted.length > 0) {
    add.CanaryApplication = { Type: 'AWS::CodeDeploy::Application', Properties: { ApplicationName: `promlake-${stage}-canary`, ComputePlatform: 'Lambda' } };
    add.CanaryRole = role(permissionsBoundary || noValue, shifted.map(id));
  }
  Object.assign(template.Resources, add);
};

module.exports = class {
  constructor(serverless) {
    const functions = () => (serverless.service.custom.settings.canary ? Object.entries(serverless.service.functions) : []);
    this.hooks = {
      // osls lets events, URLs and their permissions lead to this alias.
      'before:package:compileFunctions': () => {
        for (const [name, of] of functions()) of.targetAlias = { name: ALIAS, logicalId: `${title(name)}Alias` };
      },
      'after:aws:package:finalize:mergeCustomProviderResources': () => {
        const zips = functions().map(([name, of]) => [name, fs.readFileSync(path.join(__dirname, '..', of.package.artifact))]);
        if (zips.length > 0) extend(serverless.service.provider.compiledCloudFormationTemplate, Object.fromEntries(zips), serverless.service.custom.settings);
      },
    };
  }
};
