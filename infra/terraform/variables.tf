variable "stage" {
  description = "The stage that was packaged: make package STAGE=…"
  type        = string
  default     = "dev"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,19}$", var.stage))
    error_message = "The stage is a lower-case name of letters, digits and -, 20 at most."
  }
}

variable "region" {
  description = "The region of the stack and of the bucket for its code; that of make package REGION=…"
  type        = string
  default     = "us-east-1"
}

variable "code_bucket" {
  description = "An existing bucket in the region, for the template and the functions' zips. It is not the bucket of the data."
  type        = string
}

variable "code_prefix" {
  description = "What precedes the names of the template and the zips in their keys."
  type        = string
  default     = "promlake/"
}

variable "tags" {
  description = "Further tags of everything in the stack."
  type        = map(string)
  default     = {}
}
