package config

import "net/netip"

// sharedVariables are those outside the Herald lane.
var sharedVariables = []variable{
	{name: "WAYBILL_DSN", fallback: "root@tcp(127.0.0.1:3306)/waybill",
		help:  "data source of Waybill's own database",
		right: "for example waybill:PASSWORD@tcp(127.0.0.1:3306)/waybill",
		kind:  dsn(func(c *Config) *DSN { return &c.Ledger })},
	{name: "WAYBILL_TEMPORAL_ADDRESS", fallback: "127.0.0.1:7233",
		help:  "Temporal's frontend",
		right: "for example 127.0.0.1:7233",
		kind:  address(func(c *Config) *string { return &c.Temporal.Address }, true)},
	{name: "WAYBILL_TEMPORAL_NAMESPACE", fallback: "default",
		help:  "Temporal namespace",
		right: "letters, digits, dot, dash and underscore, for example default",
		kind:  text(func(c *Config) *string { return &c.Temporal.Namespace }, temporalNamespace, "is not the name of a Temporal namespace")},
	{name: "WAYBILL_TEMPORAL_TLS_CA_FILE", shown: "system",
		help:  "PEM bundle that vouches for Temporal; turns TLS on",
		right: bundleRight,
		kind:  certificates(func(c *Config) *string { return &c.Temporal.CAFile })},
	{name: "WAYBILL_TEMPORAL_TLS_CERT_FILE", shown: "unset",
		help:  "client certificate for Temporal; turns TLS on",
		right: "the path of a readable PEM file, for example /etc/waybill/client.pem",
		kind:  certificates(func(c *Config) *string { return &c.Temporal.CertFile })},
	{name: "WAYBILL_TEMPORAL_TLS_KEY_FILE", shown: "unset",
		help:  "private key of the client certificate",
		right: "the path of a readable PEM file, for example /etc/waybill/client.key",
		kind:  anyFile(func(c *Config) *string { return &c.Temporal.KeyFile })},
	{name: "WAYBILL_TEMPORAL_TLS_SERVER_NAME", shown: "from the address",
		help:  "name expected in Temporal's certificate; turns TLS on",
		right: "a host name, for example temporal.example.org",
		kind:  text(func(c *Config) *string { return &c.Temporal.ServerName }, serverName, "is not a host name")},
	{name: "WAYBILL_TEMPORAL_API_KEY", shown: "unset",
		help:  "API key for Temporal; turns TLS on",
		right: "the key as Temporal issued it, without quotes or line breaks",
		kind:  credential(func(c *Config) *Secret { return &c.Temporal.APIKey })},
	{name: "WAYBILL_LISTEN", fallback: "127.0.0.1:8160",
		help:  "address of the HTTP interface",
		right: "for example 127.0.0.1:8160, or :8160 for every interface",
		kind:  address(func(c *Config) *string { return &c.API.Listen }, false)},
	{name: "WAYBILL_TOKEN", shown: "unset: open",
		help:  "bearer token that protects the diagnostics and /metrics",
		right: "printable ASCII without spaces, for example the output of: openssl rand -hex 32",
		kind:  credential(func(c *Config) *Secret { return &c.API.Token })},
	{name: "WAYBILL_KEK_FILE", shown: "unset: lane off",
		help:  "key-encryption keys of the subscription lane; the first wraps, all unwrap",
		right: "a readable file with lines such as: kek-2026 BASE64, where BASE64 is the output of openssl rand -base64 32",
		kind:  keyFile()},
	{name: "WAYBILL_EGRESS_ALLOW", shown: "empty",
		help:  "networks opened for subscriptions",
		right: networksRight,
		kind:  networks(func(c *Config) *[]netip.Prefix { return &c.Egress.Allow })},
	{name: "WAYBILL_EGRESS_DENY", shown: "empty",
		help:  "networks no subscription may reach, beyond the built-in list",
		right: networksRight,
		kind:  networks(func(c *Config) *[]netip.Prefix { return &c.Egress.Deny })},
	{name: "WAYBILL_EGRESS_PORTS", fallback: "443",
		help:  "ports a subscription may use",
		right: "a list of ports, for example 443, 8443",
		kind:  ports(func(c *Config) *[]uint16 { return &c.Egress.Ports })},
	{name: "WAYBILL_LOG_LEVEL", fallback: "info",
		help:  "least severe line that is written: debug, info, warn or error",
		right: "write debug, info, warn or error",
		kind:  word(func(c *Config) *string { return &c.Log.Level }, "debug", "info", "warn", "error")},
	{name: "WAYBILL_LOG_FORMAT", shown: "json (console on a terminal)",
		help:  "json or console",
		right: "write json or console",
		kind:  word(func(c *Config) *string { return &c.Log.Format }, "json", "console")},
}

// dsn reads a data source name; its faults never repeat any part of it.
func dsn(at func(*Config) *DSN) kind {
	return kind{
		read: func(c *Config, value string) []complaint {
			parsed, wrong := parseDSN(value)
			if wrong != "" {
				return complain("the data source " + wrong)
			}
			*at(c) = parsed
			return nil
		},
		show: func(c *Config) string { return at(c).String() },
	}
}

// credential reads a text that will travel in a header: anything but visible
// ASCII is a paste error, most often the line break at the end of a file.
func credential(at func(*Config) *Secret) kind {
	return kind{
		verbatim: true,
		read: func(c *Config, value string) []complaint {
			for i := range len(value) {
				if value[i] <= ' ' || value[i] > '~' {
					return complain("the value has a space, a line break or another character that a header cannot carry")
				}
			}
			*at(c) = NewSecret(value)
			return nil
		},
		show: func(c *Config) string { return at(c).String() },
	}
}
