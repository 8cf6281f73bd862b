variable "stage" {
  description = "The stage that was packaged: make package STAGE=…"
  type        = string
  default     = "dev"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,19}$", var.stage))
    error_message = "The stage is a lower-case name of letters, digits and -, 20 at most."
  }
}

variable "package" {
  description = "The folder that make package wrote; null for dist/STAGE of the repository."
  type        = string
  default     = null
}

variable "code_bucket" {
  description = "An existing bucket in the provider's region, for the template and the functions' zips. It is not the bucket of the data."
  type        = string
}

variable "code_prefix" {
  description = "What precedes the names of the template and the zips in their keys; null for promlake/STAGE/. No two stacks share it."
  type        = string
  default     = null
}

variable "tags" {
  description = "Further tags of everything in the stack."
  type        = map(string)
  default     = {}
}
