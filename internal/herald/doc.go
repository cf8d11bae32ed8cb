// Package herald knows what one row of Phorge's webhook queue means: how its
// properties are read, which bytes are POSTed for it, which hook URIs are
// usable, and what an attempt's outcome writes back.
//
// Everything here is a pure function over its arguments. The package opens no
// connection, reads no clock and logs nothing; a value that holds a hook's URI
// or key never prints it. It refuses to guess: a row that PHP could not process
// is a Fault and stays untouched.
//
// The behaviour is PHP's (Phorge 07c1a513, PHP 8.2, libcurl 7.88), because the
// receivers were written against it. Deliberate differences say "differs".
//
// Any package may import it; it imports the standard library only.
package herald
