"""What keeps a persona running: units for the service managers of macOS and Linux."""
