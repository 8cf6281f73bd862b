output "write_url" {
  description = "The URL of Prometheus' remote_write."
  value       = aws_cloudformation_stack.promlake.outputs["WriteUrl"]
}

output "write_function_url" {
  description = "The same without the HTTP API: its requests cost nothing. Null in mode grouped."
  value       = try(aws_cloudformation_stack.promlake.outputs["WriteFunctionUrl"], null)
}

output "prometheus_url" {
  description = "The URL of a Grafana data source of type Prometheus."
  value       = aws_cloudformation_stack.promlake.outputs["PrometheusUrl"]
}

output "query_function_url" {
  description = "The same for answers beyond 6 MB and queries beyond 30 seconds."
  value       = aws_cloudformation_stack.promlake.outputs["QueryLambdaFunctionUrl"]
}

output "bucket" {
  description = "The bucket with all data; it stays when the stack is destroyed."
  value       = aws_cloudformation_stack.promlake.outputs["BucketName"]
}

output "write_queue_url" {
  description = "Writes that are not segments yet; the queue stays when the stack is destroyed."
  value       = aws_cloudformation_stack.promlake.outputs["WriteQueueUrl"]
}

output "dead_letter_queue_url" {
  description = "Writes that could not be made segments; the queue stays when the stack is destroyed."
  value       = aws_cloudformation_stack.promlake.outputs["DeadLetterQueueUrl"]
}
