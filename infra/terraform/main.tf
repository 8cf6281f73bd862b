# Promlake's stack as a Terraform module: the template and the zips of `make package STAGE=…`, put
# into a bucket and deployed as a CloudFormation stack. CloudFormation does the work, so there is one
# description of the stack; change its parameters with make package PARAMS='…'. The caller's
# provider has the region and the account (docs/deploy.md).

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

locals {
  package = coalesce(var.package, "${path.module}/../../dist/${var.stage}")
  prefix  = coalesce(var.code_prefix, "promlake/${var.stage}/")
}

# The zips have their content in their names, so they never change. Old ones go only after the stack
# was updated, so that a stack that is rolled back finds them.
resource "aws_s3_object" "code" {
  for_each = fileset(local.package, "*.zip")

  bucket = var.code_bucket
  key    = "${local.prefix}${each.value}"
  source = "${local.package}/${each.value}"

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_s3_object" "template" {
  bucket = var.code_bucket
  key    = "${local.prefix}${var.stage}-${filesha256("${local.package}/cloudformation.json")}.json"
  source = "${local.package}/cloudformation.json"

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_cloudformation_stack" "promlake" {
  name         = "promlake-${var.stage}"
  template_url = "https://${data.aws_s3_bucket.code.bucket_regional_domain_name}/${aws_s3_object.template.key}"
  capabilities = ["CAPABILITY_IAM"]
  on_failure   = "ROLLBACK"
  depends_on   = [aws_s3_object.code]

  parameters = {
    CodeBucket = var.code_bucket
    CodePrefix = local.prefix
  }

  tags = merge({ service = "promlake", stage = var.stage }, var.tags)
}

data "aws_s3_bucket" "code" {
  bucket = var.code_bucket
}
