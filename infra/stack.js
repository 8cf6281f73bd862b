'use strict';

// Reads the state of a stack from CloudFormation.
// usage: node stack.js COMMAND STACK REGION
//   whole   fails unless the stack is complete; prints its outputs and the next steps
//   id      prints the id, by which a removed stack is found
//   gone    takes the id instead of the name; fails if the stack exists; prints what stayed of it

const { CloudFormationClient, DescribeStacksCommand, GetTemplateCommand, paginateListStackResources } = require('@aws-sdk/client-cloudformation');

const WHOLE = ['CREATE_COMPLETE', 'UPDATE_COMPLETE', 'IMPORT_COMPLETE'];

// describe returns the stack, or nothing if there is none of this name.
const describe = async (client, name) => {
  try {
    const { Stacks } = await client.send(new DescribeStacksCommand({ StackName: name }));
    return Stacks.find((s) => s.StackStatus !== 'DELETE_COMPLETE');
  } catch (e) {
    if (e.name === 'ValidationError' && /does not exist/.test(e.message)) return undefined;
    throw e;
  }
};

const existing = async (client, name) => {
  const stack = await describe(client, name);
  if (!stack) throw new Error(`there is no stack ${name} in this region`);
  return stack;
};

// template returns the template that a stack was last deployed with, or nothing if there is none.
const template = async (client, name) => {
  if (!(await describe(client, name))) return undefined;
  const { TemplateBody } = await client.send(new GetTemplateCommand({ StackName: name }));
  return JSON.parse(TemplateBody);
};

const outputs = (stack) => Object.fromEntries((stack.Outputs ?? []).map((o) => [o.OutputKey, o.OutputValue]));

const failures = async (client, stack) => {
  const failed = WHOLE.includes(stack.StackStatus) ? [] : [`the stack is ${stack.StackStatus}: ${stack.StackStatusReason ?? 'no reason given'}`];
  for await (const page of paginateListStackResources({ client }, { StackName: stack.StackName })) {
    for (const r of page.StackResourceSummaries ?? []) {
      if (!WHOLE.includes(r.ResourceStatus)) {
        failed.push(`${r.LogicalResourceId} is ${r.ResourceStatus}: ${r.ResourceStatusReason ?? 'no reason given'}`);
      }
    }
  }
  return failed;
};

const whole = async (client, name) => {
  const stack = await existing(client, name);
  const failed = await failures(client, stack);
  if (failed.length > 0) throw new Error(`${name} is not whole:\n  ${failed.join('\n  ')}`);
  const of = outputs(stack);
  console.log(`deploy: ${name} is ${stack.StackStatus}`);
  for (const [label, key] of [
    ['Prometheus remote_write', 'WriteUrl'],
    ['the same free of API charges', 'WriteFunctionUrl'],
    ['Grafana data source', 'PrometheusUrl'],
    ['the same for large and long answers', 'QueryLambdaFunctionUrl'],
    ['bucket', 'BucketName'],
    ['dead-letter queue', 'DeadLetterQueueUrl'],
  ]) {
    if (key in of) console.log(`  ${label.padEnd(36)} ${of[key]}`);
  }
  if (of.DomainTarget) console.log(`Next: a DNS record of your domain, which points to ${of.DomainTarget}.`);
  console.log('Next: tokens for writers and readers, see docs/deploy.md.');
};

const id = async (client, name) => console.log((await existing(client, name)).StackId);

const gone = async (client, id) => {
  const stack = await describe(client, id);
  if (stack) throw new Error(`${stack.StackName} is still there: ${stack.StackStatus}`);
  console.log('remove: the stack is gone');
  // CloudFormation lists the resources of a removed stack for 90 days.
  for await (const page of paginateListStackResources({ client }, { StackName: id })) {
    for (const { ResourceStatus, ResourceType, PhysicalResourceId: left } of page.StackResourceSummaries ?? []) {
      if (ResourceStatus !== 'DELETE_SKIPPED') continue;
      if (ResourceType === 'AWS::S3::Bucket') console.log(`remove: the bucket ${left} stays; delete it with: aws s3 rb --force s3://${left}`);
      if (ResourceType !== 'AWS::SQS::Queue') continue;
      const move = `promlake redrive --from ${left} --to URL`;
      console.log(`remove: the queue ${left} stays; move its messages with: ${move}; delete it with: aws sqs delete-queue --queue-url ${left}`);
    }
  }
};

const client = (region) => new CloudFormationClient({ region });

module.exports = { client, existing, template };

if (require.main === module) {
  const [command, name, region, ...rest] = process.argv.slice(2);
  const commands = { whole, id, gone };
  (async () => {
    if (!commands[command]) throw new Error(`unknown command ${command}`);
    await commands[command](client(region), name, ...rest);
  })().catch((e) => {
    console.error(`stack: ${e.message}`);
    process.exitCode = 1;
  });
}
