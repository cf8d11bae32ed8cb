package rawsink

// answer is a behaviour that always says the same.
type answer struct {
	text string
	keep bool // serve further requests on the connection
}

// fixed are the behaviours whose bytes do not depend on anything.
var fixed = map[string]answer{
	"ok":           {answerOK, true},
	"fast":         {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true},
	"close":        {"", false},
	"garbage":      {"hello this is not http\r\n\r\n", false},
	"ssh":          {"SSH-2.0-OpenSSH_9.2\r\n", false},
	"partial":      {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789", false},
	"partialchunk": {chunked + "5\r\nhello\r\n", false},
	"badchunk":     {chunked + "ZZZ\r\nhello\r\n", false},
	"headeronly":   {"HTTP/1.1 200 OK\r\nX: y", false},
	"cont100":      {"HTTP/1.1 100 Continue\r\n\r\n" + answerOK, true},
	"early103":     {"HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n" + answerOK, true},
	"proc102":      {"HTTP/1.1 102 Processing\r\n\r\n" + answerOK, true},
	"conn200":      {"HTTP/1.1 200 Connection established\r\nContent-Length: 3\r\n\r\nok\n", true},
	"http10":       {"HTTP/1.0 200 OK\r\n\r\nbody", false},
	"noreason":     {"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", true},
	"noreasonsp":   {"HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", true},
	"lfonly":       {"HTTP/1.1 200 OK\nContent-Length: 2\n\nhi", true},
	"nohdr":        {"HTTP/1.1 200 OK\r\n\r\n", false},
	"gzip204":      {"HTTP/1.1 204 X\r\nContent-Encoding: gzip\r\n\r\n", true},
	"nullhdr":      {"HTTP/1.1 200 OK\r\nX: a\x00b\r\nContent-Length: 0\r\n\r\n", true},
	"h2":           {"HTTP/2 200\r\nContent-Length: 0\r\n\r\n", true},
	"h15":          {"HTTP/1.5 200 OK\r\nContent-Length: 0\r\n\r\n", true},
	"upg101":       {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", false},
}

const (
	answerOK = "HTTP/1.1 200 X\r\nContent-Length: 3\r\n\r\nok\n"
	chunked  = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
)
