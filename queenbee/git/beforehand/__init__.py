"""Whether anything can land here, known before anybody works: `hindrances` looks at a few files."""
