package key

// Usage returns the key of the counts of a tenant's queries.
func Usage(tenant string) string { return TenantPrefix(tenant) + "usage/queries.json" }
