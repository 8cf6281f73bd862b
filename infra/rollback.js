'use strict';

// Gives the functions of a stage that has the parameter canary the versions of the deployment
// before, or ends a deployment whose canary runs. docs/upgrading-aws.md says when.
// usage: node rollback.js STAGE REGION
//
// It sets the parameter Versions of the stack, so that CloudFormation knows where the aliases point
// and the next deployment begins there. That update does not go through CodeDeploy, because the
// alarms that are the reason for it would stop it.

const { UpdateStackCommand, waitUntilStackUpdateComplete } = require('@aws-sdk/client-cloudformation');
const { CodeDeployClient, ListDeploymentGroupsCommand, ListDeploymentsCommand, StopDeploymentCommand } = require('@aws-sdk/client-codedeploy');
const { GetAliasCommand, LambdaClient, paginateListVersionsByFunction } = require('@aws-sdk/client-lambda');
const { client, existing, template } = require('./stack.js');

const WAIT_SECONDS = 900;

// versions returns the version of a function that an alias points to, and the one before it, if
// there is one.
const versions = async (lambda, FunctionName, Name) => {
  const { FunctionVersion } = await lambda.send(new GetAliasCommand({ FunctionName, Name }));
  const all = [];
  for await (const page of paginateListVersionsByFunction({ client: lambda }, { FunctionName })) all.push(...page.Versions);
  const older = all.filter((v) => Number(v.Version) < Number(FunctionVersion)); // $LATEST is no number
  older.sort((a, b) => b.Version - a.Version);
  return { name: FunctionName, now: all.find((v) => v.Version === FunctionVersion), before: older[0] };
};

// refusal returns why functions cannot go back, or nothing. Descriptions of versions name their
// deployment and their formats (resources/canary.js).
const refusal = (functions) => {
  const first = functions.find(({ before }) => !before);
  if (first) return `${first.name} has no version before ${first.now.Version}`;
  const of = (key, part) => [...new Set(functions.map((f) => (f[key].Description ?? '').split('; ')[part] ?? ''))];
  const [now, before] = [of('now', 1), of('before', 1)];
  if (before.join() !== now.join()) return `the formats of objects and messages differ: ${now} now, ${before} before; see "To an older version" in docs/upgrading-aws.md`;
  if (of('before', 0).length > 1) return `the versions before are not of one deployment: ${of('before', 0).join(', ')}`;
  return undefined;
};

// stop ends the deployments of CodeDeploy that run. The aliases then point to the former versions
// again, and CloudFormation restores the rest of the stack.
const stop = async (region, applicationName) => {
  const deploy = new CodeDeployClient({ region });
  const { deploymentGroups } = await deploy.send(new ListDeploymentGroupsCommand({ applicationName }));
  const running = { applicationName, includeOnlyStatuses: ['Created', 'Queued', 'InProgress', 'Baking', 'Ready'] };
  const lists = deploymentGroups.map((deploymentGroupName) => deploy.send(new ListDeploymentsCommand({ ...running, deploymentGroupName })));
  const ids = (await Promise.all(lists)).flatMap(({ deployments }) => deployments);
  await Promise.all(ids.map((deploymentId) => deploy.send(new StopDeploymentCommand({ deploymentId, autoRollbackEnabled: true }))));
  return ids;
};

const main = async (stage, region) => {
  const cloud = client(region);
  const name = `promlake-${stage}`;
  const stack = await existing(cloud, name);
  if (stack.StackStatus === 'UPDATE_IN_PROGRESS') {
    const ids = await stop(region, `${name}-canary`);
    if (ids.length === 0) throw new Error(`${name} is being updated, and no canary runs: wait until that ends`);
    console.log(`rollback: stopped ${ids.join(', ')}; CloudFormation restores the stack`);
    return;
  }
  const { Resources } = await template(cloud, name);
  const aliases = Object.values(Resources).filter((r) => r.Type === 'AWS::Lambda::Alias'); // in the order of the parameter
  if (aliases.length === 0) throw new Error(`${name} has no versions: deploy it with the parameter canary first`);
  const lambda = new LambdaClient({ region });
  const of = ({ FunctionName, Name }) => versions(lambda, Resources[FunctionName.Ref].Properties.FunctionName, Name);
  const functions = await Promise.all(aliases.map((alias) => of(alias.Properties)));
  for (const { name: whose, now, before } of functions) {
    const former = before ? `, before it ${before.Version} of ${before.LastModified}` : '';
    console.log(`rollback: ${whose.padEnd(36)} runs ${now.Version} of ${now.LastModified}${former}`);
  }
  const refused = refusal(functions);
  if (refused) throw new Error(`refused: ${refused}`);
  const others = stack.Parameters.filter((p) => p.ParameterKey !== 'Versions').map(({ ParameterKey }) => ({ ParameterKey, UsePreviousValue: true }));
  const former = { ParameterKey: 'Versions', ParameterValue: functions.map(({ before }) => before.Version).join(',') };
  await cloud.send(new UpdateStackCommand({ StackName: name, UsePreviousTemplate: true, Parameters: [former, ...others], Capabilities: ['CAPABILITY_IAM'] }));
  await waitUntilStackUpdateComplete({ client: cloud, maxWaitTime: WAIT_SECONDS, minDelay: 2, maxDelay: 5 }, { StackName: name });
  console.log(`rollback: ${name} runs the versions before, ${former.ParameterValue}`);
};

module.exports = { refusal };

if (require.main === module) {
  main(...process.argv.slice(2)).catch((e) => {
    console.error(`rollback: ${e.message}`);
    process.exitCode = 1;
  });
}
