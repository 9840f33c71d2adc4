"""What documents ask of a congestion control, case by case, and which cases one fulfils."""
