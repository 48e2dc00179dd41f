package e2e

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// spki returns what Chromium calls a certificate by: the hash of its public key.
func spki(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(hash[:])
}

// quicPage asks for more by itself and shows by which protocol it all came.
const quicPage = `<!DOCTYPE html><title>HTTP/3</title><p id=page><?= $_SERVER['SERVER_PROTOCOL'] ?></p><p id=rest></p><script>
	addEventListener('load', async () => {
		const sent = await Promise.all([...Array(30).keys()].map(async i =>
			(await (await fetch('/post.php', {method: 'POST', body: 'x'.repeat(i * 1000)})).text())));
		const whole = sent.every((text, i) => text === 'HTTP/3.0 ' + i * 1000);
		const file = await (await fetch('/big.txt')).text();
		const all = performance.getEntriesByType('resource').map(e => e.nextHopProtocol);
		document.getElementById('rest').textContent = [whole, file.length, new Set(all).size, all[0]].join(' ');
	});
</script>`

// Chromium is told to come by QUIC: by itself it does so only where the authority
// is one of the world's.
func TestChromiumSpeaksHTTP3(t *testing.T) {
	t.Parallel()
	a := startHTTP3(t, appOptions{Files: map[string]string{
		"index.php": quicPage,
		"post.php":  `<?php echo $_SERVER['SERVER_PROTOCOL'], ' ', strlen(file_get_contents('php://input'));`,
		"big.txt":   repeat(1_000_000),
	}})
	origin := fmt.Sprintf("a.test:%d", a.Addr.Port)
	b := newBrowser(t,
		chromedp.Flag("disable-quic", false),
		chromedp.Flag("origin-to-force-quic-on", origin),
		chromedp.Flag("ignore-certificate-errors-spki-list", spki(t, filepath.Join(a.certs, "cert.pem"))),
		chromedp.Flag("host-resolver-rules", "MAP a.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
	)
	tab := b.newProfile().open("https://" + origin + "/")
	tab.waitText("#page", "HTTP/3.0")
	tab.waitText("#rest", "true 1000000 1 h3")
}
