package herald

import "strings"

// requestTarget is what curl puts on the request line for everything behind the
// authority: fragment cut, dot segments resolved, bytes from 0x80 escaped in
// the path only. Everything else is sent as written, "%2e" and a bare trailing
// "?" included.
func requestTarget(tail string) string {
	tail, _, _ = strings.Cut(tail, "#")
	path, query, hasQuery := strings.Cut(tail, "?")
	if path == "" {
		path = "/"
	}
	target := escapeHigh(removeDotSegments(path))
	if hasQuery {
		target += "?" + query
	}
	return target
}

// removeDotSegments is RFC 3986, 5.2.4, for a path that begins with a slash.
// Going up from the root stays at the root.
func removeDotSegments(path string) string {
	segments := strings.Split(path, "/")[1:]
	out := make([]string, 0, len(segments))
	for i, s := range segments {
		last := i == len(segments)-1
		switch s {
		case "..":
			out = out[:max(len(out)-1, 0)]
		case ".":
		default:
			out = append(out, s)
			continue
		}
		// A dot segment at the end names the directory itself.
		if last {
			out = append(out, "")
		}
	}
	return "/" + strings.Join(out, "/")
}

func escapeHigh(path string) string {
	out := make([]byte, 0, len(path))
	for i := range len(path) {
		if c := path[i]; c >= 0x80 {
			out = append(out, '%', lowerHex[c>>4], lowerHex[c&0xf])
		} else {
			out = append(out, c)
		}
	}
	return string(out)
}
