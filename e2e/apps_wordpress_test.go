package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

const (
	wpUser     = "editor"
	wpPassword = "correct horse, Battery 1 staple"
)

// startWordPress starts a WordPress that is not installed yet.
func startWordPress(t *testing.T) *app {
	t.Helper()
	root := copyPackage(t, "/usr/share/wordpress", "wordpress")
	needDebian(t, filepath.Join(root, "wp-content/themes/twentytwentythree"), "wordpress-theme-twentytwentythree")
	socket := startMariaDB(t,
		`CREATE DATABASE wordpress`,
		`CREATE USER wordpress@localhost IDENTIFIED BY 'wp-secret'`,
		`GRANT ALL ON wordpress.* TO wordpress@localhost`)
	writeFiles(t, root, map[string]string{"wp-config.php": `<?php
define('DB_NAME', 'wordpress');
define('DB_USER', 'wordpress');
define('DB_PASSWORD', 'wp-secret');
define('DB_HOST', 'localhost:` + socket + `');
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');
foreach (['AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE'] as $k) {
	define("{$k}_KEY", "key of $k");
	define("{$k}_SALT", "salt of $k");
}
define('WP_HTTP_BLOCK_EXTERNAL', true); // the test needs no network
define('WP_AUTO_UPDATE_CORE', false);
$table_prefix = 'wp_';
if (!defined('ABSPATH')) {
	define('ABSPATH', __DIR__ . '/');
}
require_once ABSPATH . 'wp-settings.php';
`})
	if err := os.MkdirAll(filepath.Join(root, "wp-content/uploads"), 0o755); err != nil {
		t.Fatal(err)
	}
	// There is nobody who sends mail.
	writeFiles(t, root, map[string]string{"wp-content/mu-plugins/mail.php": "<?php function wp_mail() { return true; }\n"})
	return startApp(t, appOptions{Root: root})
}

func wpInstall(b *tab, a *app) {
	b.t.Helper()
	b.visit(a.URL + "/")
	b.wait(`location.pathname === '/wp-admin/install.php'`)
	// A script of the page proposes a password, and judges each.
	b.wait(`document.querySelector('#pass-strength-result').className !== ''`)
	b.refill("#weblog_title", "Notes from the coast")
	b.refill("#user_login", wpUser)
	b.refill("#pass1", wpPassword)
	b.refill("#admin_email", "editor@example.com")
	b.wait(`document.querySelector('#pass-strength-result').className.includes('strong')`)
	b.click("#submit")
	b.waitText("h1", "Success!")
}

func wpLogin(b *tab, a *app) {
	b.t.Helper()
	b.visit(a.URL + "/wp-login.php")
	b.wait(`document.activeElement.id === 'user_login'`) // a script of the page moves the focus there
	b.refill("#user_login", wpUser)
	b.refill("#user_pass", wpPassword)
	b.click("#wp-submit")
	b.waitText("#wpbody h1", "Dashboard")
}

// wpPermalinks makes an address of the title of a post, which needs the fallback.
// That there is one the installer found out, by a request to its own server.
func wpPermalinks(b *tab, a *app) {
	b.t.Helper()
	b.visit(a.URL + "/wp-admin/options-permalink.php")
	if got, want := b.value("#permalink_structure"), "/%year%/%monthnum%/%day%/%postname%/"; got != want {
		b.t.Errorf("the installer chose the permalinks %q, want %q", got, want)
	}
	b.click("#custom_selection")
	b.refill("#permalink_structure", "/%postname%/")
	b.click("#submit")
	b.wait(`document.querySelector('#setting-error-settings_updated')`)
}

// wpUpload sends a picture with the uploader of the media page and returns its ID.
func wpUpload(b *tab, a *app, file string) string {
	b.t.Helper()
	b.visit(a.URL + "/wp-admin/media-new.php")
	b.wait(`document.querySelector('.moxie-shim input[type=file]')`)
	b.choose(".moxie-shim input[type=file]", file)
	b.wait(`document.querySelector('.media-item a.edit-attachment')`)
	link := b.attribute(".media-item a.edit-attachment", "href")
	id := regexp.MustCompile(`post=(\d+)`).FindStringSubmatch(link)
	if id == nil {
		b.t.Fatalf("link to the uploaded picture is %q", link)
	}
	return id[1]
}

// wpPublish writes a post in the block editor, gives it a picture, publishes it,
// and returns its address.
func wpPublish(b *tab, a *app, title, text, picture string) string {
	b.t.Helper()
	b.visit(a.URL + "/wp-admin/post-new.php")
	b.wait(`document.querySelector('.editor-post-title__input') && window.wp?.data?.select('core/editor').getCurrentPostId()`)
	b.wait(`document.querySelector('.edit-post-welcome-guide')`)
	b.keys(kb.Escape)
	b.wait(`!document.querySelector('.components-modal__screen-overlay')`)
	// The page may still move, so that a click would miss.
	b.wait(`(title => { title.focus(); return document.activeElement === title; })(document.querySelector('.editor-post-title__input'))`)
	b.keys(title)
	b.wait(`wp.data.select('core/editor').getEditedPostAttribute('title') === ` + strconv.Quote(title))
	b.keys("\r" + text)
	b.wait(`wp.data.select('core/editor').getEditedPostContent().includes(` + strconv.Quote(text) + `)`)
	b.run(`wp.data.dispatch('core/editor').editPost({featured_media: ` + picture + `})`)
	b.press(".editor-post-publish-panel__toggle:not([aria-disabled=true])")
	b.press(".editor-post-publish-panel .editor-post-publish-button:not([aria-disabled=true])")
	b.wait(`document.querySelector('.post-publish-panel__postpublish-header')`)
	return b.attribute(".post-publish-panel__postpublish-header a", "href")
}

func TestWordPressInTheBrowser(t *testing.T) {
	startsApplication(t)
	a := startWordPress(t)
	photo := filepath.Join(t.TempDir(), "evening.png")
	writePhoto(t, photo, 1600, 900)
	const title, text = "The sun goes down", "Tonight it took its time, and nobody hurried it."

	chromium := newBrowser(t)
	editor := chromium.newProfile().open("about:blank")
	wpInstall(editor, a)
	wpLogin(editor, a)
	wpPermalinks(editor, a)
	address := wpPublish(editor, a, title, text, wpUpload(editor, a, photo))
	if want := a.URL + "/the-sun-goes-down/"; address != want {
		t.Errorf("the post is at %s, want %s", address, want)
	}

	// What a visitor sees.
	visitor := chromium.newProfile().open(a.URL + "/")
	visitor.waitText(".wp-block-post-title a", title)
	visitor.wait(`(() => {
		const image = document.querySelector('.wp-block-post-featured-image img');
		return image.complete && image.naturalWidth > 0 && image.srcset.includes('evening-300x169.png 300w');
	})()`)
	visitor.picture(t, "wordpress.png", true)
	visitor.click(".wp-block-post-title a[href='" + address + "']")
	visitor.wait(`location.pathname === '/the-sun-goes-down/'`)
	visitor.waitText("h1", title)
	visitor.waitText("p", text)

	// Comment, which redirects and sets cookies.
	visitor.fill("#comment", "It was worth the wait & more, é.")
	visitor.fill("#author", "Bob")
	visitor.fill("#email", "bob@example.com")
	visitor.click("#commentform [type=submit]")
	visitor.wait(`location.search.includes('unapproved=')`)
	visitor.wait(`document.querySelector('#comment-2').innerText.includes('It was worth the wait & more, é.')`)

	for _, path := range []string{"/hello-world/", "/sample-page/", "/wp-json/wp/v2/posts?slug=hello-world", "/feed/", "/category/uncategorized/", "/?s=sun"} {
		if resp, body := a.get(path); resp.StatusCode != http.StatusOK || !strings.ContainsAny(body, "<{") {
			t.Errorf("GET %s: %s %q, want 200", path, resp.Status, body)
		}
	}
	if resp, _ := a.get("/hello-world"); resp.StatusCode != http.StatusMovedPermanently || resp.Header.Get("Location") != a.URL+"/hello-world/" {
		t.Errorf("GET /hello-world: %s to %q, want 301 to the same with a slash", resp.Status, resp.Header.Get("Location"))
	}
	if resp, body := a.get("/no-such-post/"); resp.StatusCode != http.StatusNotFound || !strings.Contains(body, "Notes from the coast") {
		t.Errorf("GET /no-such-post/: %s, want WordPress's own 404", resp.Status)
	}
	if resp, body := a.get("/wp-admin/"); resp.StatusCode != http.StatusFound || !strings.HasPrefix(resp.Header.Get("Location"), a.URL+"/wp-login.php?") {
		t.Errorf("GET /wp-admin/ of a visitor: %s %s, want 302 to the login", resp.Status, body)
	}
	a.checkPHPLog()
}
