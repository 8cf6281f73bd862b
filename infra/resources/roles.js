'use strict';

// A role for each function, with the permissions for its requests only. tests/infra evaluates these
// policies.

const arn = (resource) => ({ 'Fn::GetAtt': [resource, 'Arn'] });
const objects = { 'Fn::Sub': '${Bucket.Arn}/v1/*' };

const allow = (actions, resource, condition) => ({
  Effect: 'Allow',
  Action: actions,
  Resource: [resource],
  ...(condition && { Condition: condition }),
});

const listObjects = allow(['s3:ListBucket'], arn('Bucket'), { StringLike: { 's3:prefix': 'v1/*' } });
const getObjects = allow(['s3:GetObject'], objects);
const getRuntimeConfig = allow(['s3:GetObject'], { 'Fn::Sub': '${Bucket.Arn}/config/runtime.yaml' });
// A large object is uploaded in parts; a failed upload is aborted at once.
const putObjects = allow(['s3:PutObject', 's3:AbortMultipartUpload'], objects);
const deleteObjects = allow(['s3:DeleteObject'], objects);
// The states of groups of pushed metrics, which the function that takes pushes replaces. In a
// resource, * matches slashes too, but no other key has this part after the tenant.
const states = { 'Fn::Sub': '${Bucket.Arn}/v1/*/pushes/*' };
const changeStates = [
  allow(['s3:ListBucket'], arn('Bucket'), { StringLike: { 's3:prefix': 'v1/*/pushes/*' } }),
  allow(['s3:GetObject', 's3:PutObject', 's3:AbortMultipartUpload', 's3:DeleteObject'], states),
];
// What queries asked for, which the function of queries counts. No other key ends so.
const usage = { 'Fn::Sub': '${Bucket.Arn}/v1/*/usage/queries.json' };
const putUsage = allow(['s3:PutObject', 's3:AbortMultipartUpload'], usage);
// The answers to queries that the function of queries keeps. No other key has this part after the
// tenant.
const putAnswers = allow(['s3:PutObject', 's3:AbortMultipartUpload'], { 'Fn::Sub': '${Bucket.Arn}/v1/*/answers/*.arrow' });
// The dashboards that tenants save. No other key has this part after the tenant.
const changeDashboards = allow(['s3:PutObject', 's3:AbortMultipartUpload', 's3:DeleteObject'], { 'Fn::Sub': '${Bucket.Arn}/v1/*/dashboards/*' });
// The function of rules reads samples and rules, and writes samples, states, and rules that tenants
// change.
const ofRules = (prefix) => ({ 'Fn::Sub': `\${Bucket.Arn}/${prefix}/*` });
const forRules = (actions) => ({ Effect: 'Allow', Action: actions, Resource: [objects, ofRules('rules'), ofRules('rules-state')] });
const listRules = allow(['s3:ListBucket'], arn('Bucket'), { StringLike: { 's3:prefix': ['v1/*', 'rules/*', 'rules-state/*'] } });
// The function of the replica reads samples and rules, and changes those in the other bucket,
// where it has marks and its recovery point, too. It looks for the identity of a store there.
const replica = (bucket) => {
  const there = (...keys) => keys.map((k) => ({ 'Fn::Sub': `arn:\${AWS::Partition}:s3:::${bucket}/${k}` }));
  const list = (of, ...prefixes) => allow(['s3:ListBucket'], of, { StringLike: { 's3:prefix': prefixes } });
  const each = (actions, resources) => ({ Effect: 'Allow', Action: actions, Resource: resources });
  const copied = there('v1/*', 'rules/*', 'promlake-copy/*', 'promlake-follow.json');
  return [
    list(arn('Bucket'), 'v1/*', 'rules/*'),
    each(['s3:GetObject'], [objects, ofRules('rules')]),
    // A listing also shows that an object is not there.
    list({ 'Fn::Sub': `arn:\${AWS::Partition}:s3:::${bucket}` }, 'v1/*', 'rules/*', 'promlake-copy/*', 'promlake-follow.json', 'store.json'),
    each(['s3:GetObject', 's3:PutObject', 's3:AbortMultipartUpload', 's3:DeleteObject'], copied),
    each(['s3:GetObject'], there('store.json')),
  ];
};
const send = (queue) => allow(['sqs:SendMessage'], arn(queue));
// Lambda itself uses the function's role to receive messages from a queue.
const receive = (queue) => allow(['sqs:ReceiveMessage', 'sqs:DeleteMessage', 'sqs:GetQueueAttributes'], arn(queue));

// The function gives failed messages back before their visibility timeout.
const release = (queue) => allow(['sqs:ChangeMessageVisibility'], arn(queue));

const bounded = (boundary, everywhere) => (logGroup, statements) => ({
  Type: 'AWS::IAM::Role',
  Properties: {
    PermissionsBoundary: boundary,
    AssumeRolePolicyDocument: {
      Version: '2012-10-17',
      Statement: [{ Effect: 'Allow', Principal: { Service: 'lambda.amazonaws.com' }, Action: 'sts:AssumeRole' }],
    },
    Policies: [
      {
        PolicyName: 'function',
        PolicyDocument: {
          Version: '2012-10-17',
          Statement: [allow(['logs:CreateLogStream', 'logs:PutLogEvents'], arn(logGroup)), ...everywhere, ...statements],
        },
      },
    ],
  },
});

module.exports = async ({ resolveVariable }) => {
  const s = await resolveVariable('self:custom.settings');
  const stage = await resolveVariable('sls:stage');
  const write = s.mode === 'buffered' ? [] : [putObjects]; // buffered: samples go to the queue
  // Constructed, because the function refers to its role. A published version invokes itself.
  const queryFunction = { 'Fn::Sub': `arn:\${AWS::Partition}:lambda:\${AWS::Region}:\${AWS::AccountId}:function:promlake-${stage}-query${s.canary && ':*'}` };
  const invokeItself = s.queryDivide ? [allow(['lambda:InvokeFunction'], queryFunction)] : [];
  const role = bounded(s.permissionsBoundary || s.noValue, s.allMay);
  const limits = s.runtimeConfigFile === 'store' ? [getRuntimeConfig] : [];
  const redrive = [receive('DeadLetterQueue'), release('DeadLetterQueue'), send('WriteQueue')];
  return {
    Resources: {
      IngestRole: role('IngestLogGroup', [send('WriteQueue'), ...changeStates, ...write, ...limits, ...s.ingestMayRead]),
      FlushRole: role('FlushLogGroup', [receive('WriteQueue'), release('WriteQueue'), ...redrive, putObjects, ...limits, ...s.othersMayRead]),
      PlanRole: role('PlanLogGroup', [send('JobQueue'), listObjects, getObjects, putObjects, deleteObjects, ...s.othersMayRead]),
      CompactRole: role('CompactLogGroup', [receive('JobQueue'), listObjects, getObjects, putObjects, deleteObjects, ...s.othersMayRead]),
      QueryRole: role('QueryLogGroup', [listObjects, getObjects, putUsage, putAnswers, changeDashboards, ...invokeItself, ...limits, ...s.queryMayRead]),
      ...(s.replicaStore && { ReplicateRole: role('ReplicateLogGroup', [...replica(s.replicaBucket), ...s.othersMayRead]) }),
      ...(s.rulesOn && {
        RulesRole: role('RulesLogGroup', [
          send('RulesQueue'),
          receive('RulesQueue'),
          listRules,
          forRules(['s3:GetObject', 's3:PutObject', 's3:AbortMultipartUpload']),
          ...limits,
          ...s.queryMayRead,
          ...s.rulesMayNotify,
        ]),
      }),
    },
  };
};
