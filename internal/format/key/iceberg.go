package key

// IcebergPrefix returns the prefix of the objects of a tenant's Iceberg table. The table's metadata
// is below metadata/ there; its data are the files of blocks.
func IcebergPrefix(tenant, table string) string {
	return TenantPrefix(tenant) + "iceberg/" + table + "/"
}
